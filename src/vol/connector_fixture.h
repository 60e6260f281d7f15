/// \file
/// For the VOL face's tests: our connector, registered with the libhdf5 that the test is linked to.
///
/// Thread safety: for the test's thread.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "file/file.h"
#include "h5/driver.h"
#include "h5/fake_driver.h"
#include "h5/hdf5.h"
#include "vol/connector.h"
#include "vol/library_state.h"

namespace tidelane::vol {

/// What the driver, of which there is none here, has open under whatever number: a test's to set.
inline std::shared_ptr<File> driver_file;
/// What HDF5 would see of it.
inline bool driver_takes_singly = false;

inline h5::DriverTable DriverOfOneFile() {
  return {.driver_class = [](int) { return h5::Sec2Clone(); },
          .has_files = [](int) { return driver_file != nullptr; },
          .file_with_serial = [](int, unsigned long) { return driver_file; },
          .above = [](int, const File&) { return h5::AboveDriver(); },
          .open_with_serial =
              [](int, unsigned long) {
                static H5FD_t open;
                return driver_file == nullptr ? nullptr : &open;
              },
          .take_singly = [](H5FD_t*,
                            bool singly) { return std::exchange(driver_takes_singly, singly); },
          .close_left_open = [](int) {},
          .single_pieces = [](int) { return uint64_t{0}; }};
}

class ConnectorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    H5open();
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    static const h5::DriverTable kDriver = DriverOfOneFile();
    h5::RegisterDriver(kDriver);
    class_ = PluginInfo(reinterpret_cast<const void*>(&H5open), "tidelane");
    ASSERT_NE(class_, nullptr);
    connector_ = H5VLregister_connector(class_, H5P_DEFAULT);
    ASSERT_GE(connector_, 0);
    fapl_ = H5Pcreate(H5P_FILE_ACCESS);
    ASSERT_GE(H5Pset_vol(fapl_, connector_, nullptr), 0);
  }
  void TearDown() override {
    driver_file.reset();
    H5Pclose(fapl_);
    H5VLclose(connector_);
    std::remove(path_.c_str());
  }

  hid_t Create() { return H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, fapl_); }
  LibraryState& library() { return LibraryStateOf<0>(); }

  /// Whether some text of the current error stack contains `part`.
  static bool ErrorSays(const std::string& part) {
    struct Search {
      const std::string& part;
      bool found;
    } search{part, false};
    H5Ewalk2(
        H5E_DEFAULT, H5E_WALK_UPWARD,
        [](unsigned, const H5E_error2_t* error, void* data) -> herr_t {
          auto* self = static_cast<Search*>(data);
          self->found |= std::string(error->desc).find(self->part) != std::string::npos;
          return 0;
        },
        &search);
    return search.found;
  }

  const H5VL_class_t* class_ = nullptr;
  hid_t connector_ = h5::kNoId;
  hid_t fapl_ = h5::kNoId;
  const std::string path_ = "connector_test." + std::to_string(getpid()) + ".h5";
};

}  // namespace tidelane::vol
