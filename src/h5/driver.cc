#include "h5/driver.h"

namespace tidelane::h5 {

namespace {

constexpr DriverTable kNone = {
    .driver_class = [](int) -> const H5FD_class_t* { return nullptr; },
    .has_files = [](int) { return false; },
    .file_with_serial = [](int, unsigned long) { return std::shared_ptr<File>(); },
    .above = [](int, const File&) { return AboveDriver{.page_buffer = true}; },
    .open_with_serial = [](int, unsigned long) -> H5FD_t* { return nullptr; },
    .take_singly = [](H5FD_t*, bool) { return false; },
    .close_left_open = [](int) {},
    .single_pieces = [](int) { return uint64_t{0}; },
};

}  // namespace

namespace internal {
constinit std::atomic<const DriverTable*> driver{&kNone};
}

void RegisterDriver(const DriverTable& table) {
  internal::driver.store(&table, std::memory_order_release);
}

}  // namespace tidelane::h5
