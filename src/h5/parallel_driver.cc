#include "h5/parallel_driver.h"

#include "h5/parallel_publication.h"

namespace tidelane::h5 {

namespace {

constexpr ParallelDriverTable kNone = {
    .capture = [](Library&, hid_t, void*, const char*, bool,
                  Fallback&) { return std::shared_ptr<ParallelFile>(); },
    .watch = [](Library&, hid_t, void*, const char*, bool) {},
    .may_hide = [](const char*) { return false; },
    .publish = [](hid_t, void*, std::unique_ptr<ParallelOpening>&) { return false; },
    .name_of = [](int, unsigned long) -> const std::string* { return nullptr; },
    .note_opened_again = [](int, const char*) {},
    .has_files = [](int) { return false; },
    .file_with_serial = [](int, unsigned long) { return std::shared_ptr<ParallelFile>(); },
    .capture_reading = [](Library&, hid_t, void*, const char*, bool,
                          Fallback&) { return std::shared_ptr<ParallelReading>(); },
    .has_readings = [](int) { return false; },
    .reading_with_serial = [](int, unsigned long) { return std::shared_ptr<ParallelReading>(); },
};

}  // namespace

namespace internal {
constinit std::atomic<const ParallelDriverTable*> parallel_driver{&kNone};
}

void RegisterParallelDriver(const ParallelDriverTable& table) {
  internal::parallel_driver.store(&table, std::memory_order_release);
}

}  // namespace tidelane::h5
