// What HDF5 leaves on a program's transfer list (which kind of I/O a transfer was, and why no other) is what it leaves there
// natively.
#include <vector>

#include "conformance/fixture.h"

namespace tidelane::testing {
namespace {

#if H5_VERSION_GE(1, 14, 3)

struct Left {
  uint32_t cause = 0;
  uint32_t mode = 0;
  bool operator==(const Left&) const = default;
};
void PrintTo(const Left& left, std::ostream* out) {
  *out << std::hex << "cause 0x" << left.cause << ", mode 0x" << left.mode;
}

Left left_on(hid_t list) {
  Left left;
  EXPECT_GE(H5Pget_no_selection_io_cause(list, &left.cause), 0);
  EXPECT_GE(H5Pget_actual_selection_io_mode(list, &left.mode), 0);
  return left;
}

// More than HDF5's sieve buffer and its chunk cache hold.
constexpr hsize_t kCount = 1 << 20;

struct Stored {
  const char* name;
  hsize_t chunk;  // 0: one piece
  bool filtered;
};

class TransferTold : public Conformance {
 protected:
  static Hid create_stored(hid_t location, const Stored& stored) {
    const Hid list(H5Pcreate(H5P_DATASET_CREATE));
    if (stored.chunk != 0) {
      EXPECT_GE(H5Pset_chunk(list, 1, &stored.chunk), 0);
    }
    if (stored.filtered) {
      EXPECT_GE(H5Pset_deflate(list, 1), 0);
    }
    return Hid(H5Dcreate2(location, stored.name, H5T_NATIVE_INT,
                          Hid(H5Screate_simple(1, &kCount, nullptr)), H5P_DEFAULT, list,
                          H5P_DEFAULT));
  }
};

struct Expected {
  Stored stored;
  Left by_default;
  Left selection_io_on;
};
const Expected kExpected[] = {
    {{"one piece", 0, false},
     {H5D_SEL_IO_DEFAULT_OFF, H5D_SCALAR_IO},
     {H5D_SEL_IO_NO_VECTOR_OR_SELECTION_IO_CB, H5D_SCALAR_IO}},
    {{"large chunks", kCount / 2, false},
     {H5D_SEL_IO_DEFAULT_OFF, H5D_SCALAR_IO},
     {H5D_SEL_IO_NO_VECTOR_OR_SELECTION_IO_CB, H5D_SCALAR_IO}},
    {{"small chunks", kCount / 16, false},
     {H5D_SEL_IO_CHUNK_CACHE, H5D_SCALAR_IO},
     {H5D_SEL_IO_CHUNK_CACHE, H5D_SCALAR_IO}},
    {{"filtered", kCount / 16, true},
     {H5D_SEL_IO_DATASET_FILTER, H5D_SCALAR_IO},
     {H5D_SEL_IO_DATASET_FILTER, H5D_SCALAR_IO}},
};

TEST_P(TransferTold, EachTransferLeavesWhatItLeavesNatively) {
  run([&] {
    const Hid opened = create(file());
    std::vector<int> values = elements(1, kCount);
    for (const Expected& expected : kExpected) {
      SCOPED_TRACE(expected.stored.name);
      for (const auto wish : {H5D_SELECTION_IO_MODE_DEFAULT, H5D_SELECTION_IO_MODE_ON}) {
        const bool on = wish == H5D_SELECTION_IO_MODE_ON;
        SCOPED_TRACE(on ? "selection I/O on" : "by default");
        const Left& left = on ? expected.selection_io_on : expected.by_default;
        const Hid dataset = create_stored(opened, expected.stored);
        const Hid list(H5Pcreate(H5P_DATASET_XFER));
        EXPECT_GE(H5Pset_selection_io(list, wish), 0);
        const auto transfer = [&](bool write) {
          const herr_t result =
              write ? H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, list, values.data())
                    : H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, list, values.data());
          EXPECT_GE(result, 0) << error_text();
          return left_on(list);
        };
        EXPECT_EQ(transfer(false), Left{}) << "nothing is stored yet";
        const Left made = transfer(true);
        if (!on) {  // with it, a new chunk goes through the cache once
          EXPECT_EQ(made, left);
        }
        EXPECT_EQ(transfer(false), left);
        EXPECT_EQ(transfer(true), left) << "again";
        H5D_selection_io_mode_t kept = H5D_SELECTION_IO_MODE_OFF;
        EXPECT_GE(H5Pget_selection_io(list, &kept), 0);
        EXPECT_EQ(kept, wish);
        EXPECT_GE(H5Ldelete(opened, expected.stored.name, H5P_DEFAULT), 0);
      }
    }
  });
}

CONFORMANCE_WAYS(TransferTold, kNative, kImplicit, kDeferredAll, kAuto);

#endif

}  // namespace
}  // namespace tidelane::testing
