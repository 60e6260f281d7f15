#include "query/exports.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "predicate/text.h"
#include "query/explain.h"
#include "query/quiet_errors.h"
#include "query/scan.h"

#define TIDELANE_EXPORT extern "C" __attribute__((visibility("default"), used))

using tidelane::Status;
using tidelane::h5::Library;
using tidelane::query::ColumnSpec;
using tidelane::query::QuietErrors;
using tidelane::query::Scan;

struct tl_scan {
  Scan scan;
};

namespace {

constexpr std::chrono::hours kLongestBudget{24 * 365};  // more the clock cannot count

Scan::Clock::time_point DeadlineIn(int64_t budget_us) {
  const std::chrono::microseconds budget(std::max<int64_t>(budget_us, 0));
  return Scan::Clock::now() + std::min<std::chrono::microseconds>(budget, kLongestBudget);
}

int Told(const Status& status, char* why, size_t size) {
  if (status.ok()) return 0;
  if (why != nullptr && size != 0) std::snprintf(why, size, "%s", status.Message().c_str());
  return -1;
}

// Whatever is short of memory says so.
template <typename Work>
Status Try(Work work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return Status::Failed(ENOMEM, "have memory for a query");
  }
}

tidelane::predicate::QueryPtr ParseText(const char* text, Status& status) {
  std::string why;
  auto query = tidelane::predicate::Parse(text == nullptr ? "" : text, why);
  if (query == nullptr) status = Status::Failed(EINVAL, "understand the query, " + why);
  return query;
}

std::vector<ColumnSpec> SpecsOf(const tl_query_column* columns, size_t count) {
  std::vector<ColumnSpec> specs(count);
  for (size_t i = 0; i < count; ++i) {
    specs[i] = {columns[i].name, columns[i].dataset,
                columns[i].field == nullptr ? "" : columns[i].field};
  }
  return specs;
}

Library* LibraryAround(const void* code, Status& status) {
  std::string why;
  const int slot = tidelane::h5::SlotOf(code, why);
  if (slot >= 0) return &tidelane::h5::LibraryAt(slot);
  status = Status::Failed(EINVAL, "use this HDF5: " + why);
  return nullptr;
}

QuietErrors Quietly(const tl_scan* scan) { return QuietErrors(scan->scan.columns().hdf5()); }

}  // namespace

TIDELANE_EXPORT char* tidelane_query_names(const char* text, char* why, size_t size) {
  char* result = nullptr;
  const Status status = Try([&] {
    Status parsed;
    const auto query = ParseText(text, parsed);
    if (query == nullptr) return parsed;
    const nlohmann::json names = query->Columns();
    result = strdup(names.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return result == nullptr ? Status::Failed(ENOMEM, "have memory for names") : Status();
  });
  static_cast<void>(Told(status, why, size));
  return result;
}

TIDELANE_EXPORT tl_scan* tidelane_query_open(const void* hdf5, const char* text,
                                             const tl_query_column* columns, size_t count,
                                             unsigned flags, char* why, size_t size) {
  tl_scan* scan = nullptr;
  const Status status = Try([&] {
    Status failed;
    Library* const library = LibraryAround(hdf5, failed);
    if (library == nullptr) return failed;
    auto query = ParseText(text, failed);
    if (query == nullptr) return failed;
    if (count == 0) return Status::Failed(EINVAL, "query without columns");
    const QuietErrors quiet(*library);
    const tidelane::query::TileSizes sizes = (flags & TL_QUERY_SMALL_PIECES) != 0
                                                 ? tidelane::query::TileSizes{4096, 1024, 8192}
                                                 : tidelane::query::TileSizes{};
    auto made = std::make_unique<tl_scan>(tl_scan{Scan(*library, std::move(query), sizes)});
    const auto constants = (flags & TL_QUERY_CONSTANTS_OF_COLUMN) != 0
                               ? tidelane::predicate::Constants::kOfElement
                               : tidelane::predicate::Constants::kExact;
    failed = made->scan.Open(SpecsOf(columns, count), constants);
    if (failed.ok()) scan = made.release();
    return failed;
  });
  static_cast<void>(Told(status, why, size));
  return scan;
}

TIDELANE_EXPORT int tidelane_query_shape(const tl_scan* scan, uint64_t* dims, int most) {
  const auto& layout = scan->scan.columns().layout();
  if (layout.scalar) return 0;
  std::copy_n(layout.extent.begin(), std::clamp(most, 0, layout.rank), dims);
  return layout.rank;
}

TIDELANE_EXPORT int tidelane_query_next(tl_scan* scan, int64_t budget_us, tl_query_block* block,
                                        char* why, size_t size) {
  auto step = Scan::Step::kEnd;
  const QuietErrors quiet = Quietly(scan);
  const Status status = Try([&] { return scan->scan.Next(DeadlineIn(budget_us), step); });
  if (!status.ok()) return Told(status, why, size);
  if (step == Scan::Step::kBlock) {
    *block = {scan->scan.block().first, scan->scan.block().elements, scan->scan.hits(),
              scan->scan.bits().words()};
  }
  return static_cast<int>(step);
}

TIDELANE_EXPORT int tidelane_query_count(tl_scan* scan, int64_t budget_us, uint64_t* count,
                                         char* why, size_t size) {
  auto step = Scan::Step::kEnd;
  const QuietErrors quiet = Quietly(scan);
  const Status status = Try([&] { return scan->scan.Count(DeadlineIn(budget_us), *count, step); });
  return status.ok() ? static_cast<int>(step) : Told(status, why, size);
}

TIDELANE_EXPORT void tidelane_query_positions(const tl_scan* scan, uint64_t* to) {
  scan->scan.bits().Positions(scan->scan.block().first, to);
}

TIDELANE_EXPORT void tidelane_query_mask(const tl_scan* scan, uint8_t* to) {
  scan->scan.bits().Bytes(to);
}

TIDELANE_EXPORT int tidelane_query_values(tl_scan* scan, size_t column, void* to, char* why,
                                          size_t size) {
  const QuietErrors quiet = Quietly(scan);
  return Told(Try([&] { return scan->scan.Values(column, static_cast<std::byte*>(to)); }), why,
              size);
}

TIDELANE_EXPORT uint64_t tidelane_query_column_size(const tl_scan* scan, size_t column) {
  const auto& columns = scan->scan.columns();
  return column < columns.count() ? columns.at(column).type.size : 0;
}

TIDELANE_EXPORT void tidelane_query_progress(const tl_scan* scan, uint64_t* done, uint64_t* total) {
  *done = scan->scan.totals().elements;
  *total = scan->scan.blocks().elements();
}

TIDELANE_EXPORT char* tidelane_query_explain(const tl_scan* scan) {
  try {
    const QuietErrors quiet = Quietly(scan);
    return strdup(tidelane::query::Explain(scan->scan).c_str());
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

TIDELANE_EXPORT int tidelane_query_rewind(tl_scan* scan, char* why, size_t size) {
  const QuietErrors quiet = Quietly(scan);
  return Told(Try([&] { return scan->scan.Rewind(); }), why, size);
}

TIDELANE_EXPORT void tidelane_query_close(tl_scan* scan) {
  if (scan == nullptr) return;
  const QuietErrors quiet = Quietly(scan);
  delete scan;
}
