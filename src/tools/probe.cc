/// \file
/// HDF5 is not linked but found in the library named: its functions by name, its types as every
/// version since 1.10 has them. CUDA's driver likewise.
///
/// Invariant: each function used is looked up first; what is missing is said by name.
///
/// Thread safety: as probe.h.
#include "tools/probe.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tools/loaded_library.h"
#include "tools/summary_file.h"

namespace tidelane::tools {
namespace {

using hid_t = int64_t;
using hsize_t = unsigned long long;

constexpr unsigned kTruncate = 2;  // H5F_ACC_TRUNC
constexpr size_t kMib = size_t{1} << 20;
constexpr size_t kSetBytes = 4 * kMib;
constexpr size_t kRows = 512;
constexpr size_t kRowElements = 1024;

template <class Result>
Result Checked(Result result, const char* call) {
  if (result < 0) {
    std::fprintf(stderr, "%s failed\n", call);
    std::exit(1);
  }
  return result;
}

int About(LoadedLibrary& library) {
  unsigned version[3] = {0, 0, 0};
  library.Find<int(unsigned*, unsigned*, unsigned*)>("H5get_libversion")(&version[0], &version[1],
                                                                         &version[2]);
  bool threadsafe = false;
  if (library.Has("H5is_library_threadsafe")) {
    library.Find<int(bool*)>("H5is_library_threadsafe")(&threadsafe);
  }
  Json json{{"version", {version[0], version[1], version[2]}},
            {"threadsafe", threadsafe},
            {"parallel", library.Has("H5Pset_fapl_mpio")},
            {"connector", false}};
  if (library.Has("H5VLregister_connector_by_name")) {
    json["connector"] = library.Find<hid_t(const char*, hid_t)>("H5VLregister_connector_by_name")(
                            "tidelane", 0) >= 0;
  }
  std::puts(json.dump().c_str());
  return 0;
}

// The library's own MPI, which came with it.
int AboutMpi() {
  using Init = int(int*, char***, int, int*);
  auto* const init = reinterpret_cast<Init*>(dlsym(RTLD_DEFAULT, "MPI_Init_thread"));
  auto* const version =
      reinterpret_cast<int (*)(char*, int*)>(dlsym(RTLD_DEFAULT, "MPI_Get_library_version"));
  auto* const finish = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "MPI_Finalize"));
  if (init == nullptr || version == nullptr || finish == nullptr) return 1;
  constexpr int kMultiple = 3;  // MPI_THREAD_MULTIPLE, in MPICH's and in Open MPI's family
  int provided = -1;
  char name[8192] = {};
  int size = 0;
  if (init(nullptr, nullptr, kMultiple, &provided) != 0) return 1;
  version(name, &size);
  finish();
  std::string first(name);
  first.resize(std::min(first.find_first_of(",\n"), first.size()));
  std::ranges::replace(first, '\t', ' ');
  std::puts(Json{{"library", first}, {"threads", provided}}.dump().c_str());
  return 0;
}

struct GpuCalls {
  const char* init;
  const char* count;
  const char* get;
  const char* name;
  const char* memory;
};
constexpr GpuCalls kCuda{"cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName",
                         "cuDeviceTotalMem_v2"};
constexpr GpuCalls kHip{"hipInit", "hipGetDeviceCount", "hipDeviceGet", "hipDeviceGetName",
                        "hipDeviceTotalMem"};

// No context is made: that would take memory of each device, and seconds.
int AboutGpus(LoadedLibrary& library) {
  const bool is_hip = library.Has(kHip.init);
  const GpuCalls& calls = is_hip ? kHip : kCuda;
  const auto cuda_name = is_hip ? nullptr : library.Find<int(int, const char**)>("cuGetErrorName");
  const auto hip_name = is_hip ? library.Find<const char*(int)>("hipGetErrorName") : nullptr;
  const auto check = [&](int error, const char* call) {
    if (error == 0) return;
    const char* name = nullptr;
    if (is_hip) {
      name = hip_name(error);
    } else {
      cuda_name(error, &name);
    }
    std::fprintf(stderr, "%s says %s\n", call,
                 name == nullptr ? std::to_string(error).c_str() : name);
    std::exit(1);
  };
  constexpr int kNoDevice = 100;
  const int started = library.Find<int(unsigned)>(calls.init)(0);
  int count = 0;
  if (started != kNoDevice) {
    check(started, calls.init);
    check(library.Find<int(int*)>(calls.count)(&count), calls.count);
  }
  const auto get = library.Find<int(int*, int)>(calls.get);
  const auto get_name = library.Find<int(char*, int, int)>(calls.name);
  const auto get_memory = library.Find<int(size_t*, int)>(calls.memory);
  Json gpus = Json::array();
  for (int i = 0; i < count; ++i) {
    int device = 0;
    char name[256] = {};
    size_t bytes = 0;
    check(get(&device, i), calls.get);
    check(get_name(name, sizeof name - 1, device), calls.name);
    check(get_memory(&bytes, device), calls.memory);
    gpus.push_back({{"name", name}, {"bytes", bytes}});
  }
  std::puts(gpus.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  return 0;
}

int32_t Element(size_t set, size_t i) {
  return static_cast<int32_t>((set + 1) * 2654435761u + i * 40503u);
}

/// The file: datasets of 4 MiB, written whole, and one that is written row by row.
class TestFile {
 public:
  TestFile(LoadedLibrary& library, std::string path, size_t sets)
      : library_(library), path_(std::move(path)), sets_(sets) {
    Checked(library.Find<int()>("H5open")(), "H5open");
    integer_ = *library.Find<hid_t>("H5T_NATIVE_INT32_g");
  }

  void Write() {
    file_ = Checked(library_.Find<hid_t(const char*, unsigned, hid_t, hid_t)>("H5Fcreate")(
                        path_.c_str(), kTruncate, 0, 0),
                    "H5Fcreate");
    for (size_t set = 0; set < sets_; ++set) WriteSet(set);
    WriteRows();
    Close("H5Fclose", file_);
  }

  void Read() {
    file_ =
        Checked(library_.Find<hid_t(const char*, unsigned, hid_t)>("H5Fopen")(path_.c_str(), 0, 0),
                "H5Fopen");
    for (size_t set = 0; set < sets_; ++set) {
      Compare(std::to_string(set), set, kSetBytes / sizeof(int32_t));
    }
    Compare("rows", sets_, kRows * kRowElements);
    Close("H5Fclose", file_);
  }

 private:
  void Close(const char* function, hid_t id) {
    Checked(library_.Find<int(hid_t)>(function)(id), function);
  }
  hid_t Space(const std::vector<hsize_t>& size) {
    return Checked(library_.Find<hid_t(int, const hsize_t*, const hsize_t*)>("H5Screate_simple")(
                       static_cast<int>(size.size()), size.data(), nullptr),
                   "H5Screate_simple");
  }
  hid_t Create(const std::string& name, hid_t space) {
    return Checked(library_.Find<hid_t(hid_t, const char*, hid_t, hid_t, hid_t, hid_t, hid_t)>(
                       "H5Dcreate2")(file_, name.c_str(), integer_, space, 0, 0, 0),
                   "H5Dcreate2");
  }
  void WriteData(hid_t set, hid_t memory, hid_t where, const std::vector<int32_t>& data) {
    Checked(library_.Find<int(hid_t, hid_t, hid_t, hid_t, hid_t, const void*)>("H5Dwrite")(
                set, integer_, memory, where, 0, data.data()),
            "H5Dwrite");
  }
  static std::vector<int32_t> Data(size_t set, size_t begin, size_t count) {
    std::vector<int32_t> data(count);
    for (size_t i = 0; i < count; ++i) data[i] = Element(set, begin + i);
    return data;
  }

  void WriteSet(size_t set) {
    const size_t count = kSetBytes / sizeof(int32_t);
    const hid_t space = Space({count});
    const hid_t id = Create(std::to_string(set), space);
    WriteData(id, 0, 0, Data(set, 0, count));
    Close("H5Dclose", id);
    Close("H5Sclose", space);
  }

  void WriteRows() {
    const hid_t space = Space({kRows, kRowElements});
    const hid_t row = Space({1, kRowElements});
    const hid_t id = Create("rows", space);
    const auto select =
        library_
            .Find<int(hid_t, int, const hsize_t*, const hsize_t*, const hsize_t*, const hsize_t*)>(
                "H5Sselect_hyperslab");
    for (size_t i = 0; i < kRows; ++i) {
      const hsize_t start[2] = {i, 0};
      const hsize_t count[2] = {1, kRowElements};
      Checked(select(space, 0, start, nullptr, count, nullptr), "H5Sselect_hyperslab");
      WriteData(id, row, space, Data(sets_, i * kRowElements, kRowElements));
    }
    Close("H5Dclose", id);
    Close("H5Sclose", row);
    Close("H5Sclose", space);
  }

  void Compare(const std::string& name, size_t set, size_t count) {
    const hid_t id =
        Checked(library_.Find<hid_t(hid_t, const char*, hid_t)>("H5Dopen2")(file_, name.c_str(), 0),
                "H5Dopen2");
    std::vector<int32_t> data(count);
    Checked(library_.Find<int(hid_t, hid_t, hid_t, hid_t, hid_t, void*)>("H5Dread")(
                id, integer_, 0, 0, 0, data.data()),
            "H5Dread");
    if (data != Data(set, 0, count)) {
      std::fprintf(stderr, "dataset %s does not hold what was written\n", name.c_str());
      std::exit(1);
    }
    Close("H5Dclose", id);
  }

  LoadedLibrary& library_;
  std::string path_;
  size_t sets_;
  hid_t integer_ = 0;
  hid_t file_ = 0;
};

}  // namespace

int Probe(const Arguments& arguments) {
  const std::vector<std::string>& words = arguments.operands;
  if (words.size() < 2) return kUsage;
  LoadedLibrary library(words[1]);
  if (!library.error().empty()) {
    std::fprintf(stderr, "%s\n", library.error().c_str());
    return kFailed;
  }
  if (words[0] == "load") return kDone;
  if (words[0] == "about") return About(library);
  if (words[0] == "mpi") return AboutMpi();
  if (words[0] == "gpus") return AboutGpus(library);
  if (words.size() < 4) return kUsage;
  const size_t sets = std::strtoull(words[3].c_str(), nullptr, 10) * kMib / kSetBytes;
  TestFile file(library, words[2], sets);
  words[0] == "write" ? file.Write() : file.Read();
  return kDone;
}

}  // namespace tidelane::tools
