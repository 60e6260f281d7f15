#include "vol/exports.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/activity.h"
#include "base/notices.h"
#include "base/setting_source.h"
#include "base/settings.h"
#include "base/summary.h"
#include "base/trace.h"
#include "engine/engine.h"
#include "file/call_scope.h"
#include "publish/publication.h"
#include "publish/unpublished.h"
#include "vol/call_inside.h"
#include "vol/call_queue.h"
#include "vol/chunk_capture.h"
#include "vol/commit.h"
#include "vol/work_holders.h"

#define TIDELANE_EXPORT extern "C" __attribute__((visibility("default"), used))

using tidelane::Engine;
using tidelane::Status;

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

char* Text(const std::string& text) { return strdup(text.c_str()); }
char* Text(const Json& json) {
  return Text(
      json.dump(-1, ' ', false, Json::error_handler_t::replace));  // names need not be UTF-8
}

int Result(const Status& status, char* why, size_t size) {
  if (status.ok()) return 0;
  if (why != nullptr && size != 0) std::snprintf(why, size, "%s", status.Message().c_str());
  return -1;
}

using tidelane::vol::WorkHolder;

Status NotSettled(const WorkHolder& holder, int error, const char* what) {
  return Status::Failed(error, what).At(holder.file->path(), 0, 0);
}

// Another thread may be inside a copy of HDF5 that has no lock, unless the program keeps it out, or no other has written.
bool MayEnter(int slot, const std::vector<WorkHolder>& holders, const void* kept_out_of) {
  tidelane::h5::Library& hdf5 = tidelane::h5::LibraryAt(slot);
  if (hdf5.thread_safe() || (kept_out_of != nullptr && hdf5.Contains(kept_out_of))) return true;
  return std::ranges::all_of(holders, [slot](const WorkHolder& holder) {
    return holder.slot != slot || pthread_equal(holder.writer, pthread_self()) != 0;
  });
}

// Chunks stay where they were if they could not be inserted; what HDF5 says of it, the file's flush or close tells.
Status SettleHolder(const WorkHolder& holder, bool may_enter) {
  if (!may_enter) {
    return NotSettled(holder, EDEADLK,
                      "put chunks into the file that another thread wrote with an HDF5 that is not "
                      "thread-safe: let that thread wait or flush");
  }
  tidelane::vol::LibraryState& library = tidelane::vol::internal::libraries[holder.slot];
  bool settled = false;
  const auto settle = [&] {
    static_cast<void>(tidelane::vol::DoCallWork(library, nullptr, H5I_BADID, library.default_dxpl));
    settled = !AnyCallWork(library) || !library.call_queue->Has(*holder.file);
  };
  if (tidelane::vol::Enter(library, settle) && settled) return {};
  return NotSettled(holder, EIO, "put compressed chunks into the file (its flush says why)");
}

}  // namespace

TIDELANE_EXPORT void tidelane_free(char* text) { std::free(text); }

TIDELANE_EXPORT char* tidelane_settings(void) {
  Json list = Json::array();
  for (const tidelane::Setting& setting : tidelane::Settings()) {
    list.push_back({{"name", setting.name},
                    {"variable", tidelane::VariableOf(setting.name)},
                    {"accepted", tidelane::AcceptedBy(setting)},
                    {"default", tidelane::DefaultOf(setting)},
                    {"meaning", setting.meaning},
                    {"per_file", setting.scope == tidelane::Scope::kFile},
                    {"by_variable_only", setting.scope == tidelane::Scope::kVariable}});
  }
  return Text(list);
}

TIDELANE_EXPORT int tidelane_check_setting(const char* item, char* why, size_t size) {
  tidelane::Config config;
  tidelane::SettingText text;
  return Result(text.Set(config, item, "option"), why, size);
}

TIDELANE_EXPORT int tidelane_libraries(void) {
  int count = 0;
  for (const tidelane::vol::LibraryState& library : tidelane::vol::internal::libraries) {
    if (library.connectors > 0) ++count;
  }
  return count;
}

TIDELANE_EXPORT char* tidelane_summary(int json) {
  Engine* const engine = Engine::IfMade();
  if (engine != nullptr) {
    for (const auto& file : engine->FilesAt(nullptr)) file->drainer().CountCaptured();
  }
  const tidelane::Summary summary =
      tidelane::TakeSummary(engine == nullptr ? tidelane::Config() : engine->config());
  return Text(json != 0 ? SummaryJson(summary) : SummaryTable(summary));
}

TIDELANE_EXPORT void tidelane_record(int timeline) {
  tidelane::RecordWaitsAlways();
  if (timeline != 0) tidelane::EnableTrace();
}

TIDELANE_EXPORT int tidelane_write_timeline(const char* path, char* why, size_t size) {
  return Result(tidelane::WriteTrace(path), why, size);
}

TIDELANE_EXPORT int tidelane_settle_chunks(const char* path, const void* kept_out_of, char* why,
                                           size_t size) {
  Engine* const engine = Engine::IfMade();
  const std::vector<WorkHolder> holders = tidelane::vol::WorkHolders();
  if (engine == nullptr || holders.empty()) return 0;
  const auto files = engine->FilesAt(path);
  Status first;
  for (const WorkHolder& holder : holders) {
    if (std::ranges::find(files, holder.file) == files.end()) continue;
    Status status = SettleHolder(holder, MayEnter(holder.slot, holders, kept_out_of));
    if (first.ok()) first = std::move(status);
  }
  return Result(first, why, size);
}

TIDELANE_EXPORT int tidelane_wait(const char* path, int64_t timeout_us, char* why, size_t size) {
  Engine* const engine = Engine::IfMade();
  if (engine == nullptr) return 1;
  constexpr int64_t kLongest = int64_t{1'000'000'000} * 1'000'000;  // more the clock cannot count
  const Clock::time_point deadline =
      Clock::now() + std::chrono::microseconds(std::clamp<int64_t>(timeout_us, 0, kLongest));
  for (const auto& file : engine->FilesAt(path)) {
    bool stored = false;
    if (Result(file->closing().WaitStored(deadline, stored), why, size) < 0) return -1;
    if (!stored) return 0;
  }
  return 1;
}

TIDELANE_EXPORT void tidelane_waits_itself(int begin) {
  begin != 0 ? tidelane::ExplicitWaitScope::Begin() : tidelane::ExplicitWaitScope::End();
}

TIDELANE_EXPORT void tidelane_commits_now(int begin) {
  begin != 0 ? tidelane::vol::CommitScope::Begin() : tidelane::vol::CommitScope::End();
}

TIDELANE_EXPORT int tidelane_withhold(const char* path) {
  if (path == nullptr) {
    tidelane::SetExitsByError();
    return 0;
  }
  const auto hidden = tidelane::Unpublished::Get().At(path);
  if (hidden == nullptr) return 0;
  hidden->Withhold();
  return 1;
}

TIDELANE_EXPORT void tidelane_listen(int (*schedule)(int (*tell)(void*), void*),
                                     int (*tell)(void*)) {
  tidelane::ListenForNotices(schedule, tell);
}

TIDELANE_EXPORT char* tidelane_take_notices(void) {
  Json list = Json::array();
  for (const tidelane::Notice& notice : tidelane::TakeNotices()) {
    list.push_back({{"path", notice.path},
                    {"reason", Name(notice.reason)},
                    {"text", tidelane::Text(notice.reason)}});
  }
  return Text(list);
}
