#include "h5/mpi.h"

#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/counters.h"
#include "base/trace.h"

namespace tidelane::h5 {
namespace {

constexpr int kLongestHint = 256;

constexpr size_t kMostStatusBytes = 256;  // whatever MPI_Status is

// Who has waited for long may wait a little longer: a 16th of that, and at most half a millisecond.
constexpr uint64_t kShortestSleepNs = 20'000;
constexpr uint64_t kLongestSleepNs = 500'000;

void SleepAfter(uint64_t waited_ns) {
  const timespec sleep{
      0, static_cast<long>(std::clamp(waited_ns / 16, kShortestSleepNs, kLongestSleepNs))};
  nanosleep(&sleep, nullptr);
}

// MPICH's handles are ints whose values are part of its ABI.
struct MpichAbi {
  using Handle = int;
  static constexpr bool kTurns = true;  // and yields to nobody
  static Handle Of(MpiHandle handle) { return static_cast<int>(handle.bits); }
  bool Find(void*) { return true; }
  Handle unsigned_long = 0x4c000808;
  Handle max = 0x58000001;
  Handle info_null = 0x1c000000;
};

// Open MPI's are pointers to objects of its library.
struct OpenMpiAbi {
  using Handle = void*;
  // It yields by itself where mpirun starts more ranks than there are slots (mpi_yield_when_idle), and our sleeps come later than that.
  static constexpr bool kTurns = false;
  static Handle Of(MpiHandle handle) { return reinterpret_cast<void*>(handle.bits); }
  bool Find(void* library) {
    // A program that names one of them has a copy, which the library then uses instead of its own: the program's come
    // first in the global scope. If the MPI there is this one.
    void* const global = dlopen(nullptr, RTLD_LAZY);
    const bool same = dlsym(global, "MPI_Allreduce") == dlsym(library, "MPI_Allreduce");
    void* const scope = same ? global : library;
    unsigned_long = dlsym(scope, "ompi_mpi_unsigned_long");
    max = dlsym(scope, "ompi_mpi_op_max");
    info_null = dlsym(scope, "ompi_mpi_info_null");
    return unsigned_long != nullptr && max != nullptr && info_null != nullptr;
  }
  Handle unsigned_long = nullptr;
  Handle max = nullptr;
  Handle info_null = nullptr;
};

template <typename Abi>
class MpiOf final : public Mpi {
 public:
  using Handle = typename Abi::Handle;

  bool Find(void* library) {
    return abi_.Find(library) && Resolve(library, "MPI_Initialized", initialized_) &&
           Resolve(library, "MPI_Finalized", finalized_) &&
           Resolve(library, "MPI_Allreduce", allreduce_) &&
           Resolve(library, "MPI_Allgather", allgather_) &&
           Resolve(library, "MPI_Iallreduce", iallreduce_) &&
           Resolve(library, "MPI_Iallgather", iallgather_) && Resolve(library, "MPI_Test", test_) &&
           Resolve(library, "MPI_Comm_rank", comm_rank_) &&
           Resolve(library, "MPI_Comm_size", comm_size_) &&
           Resolve(library, "MPI_Comm_free", comm_free_) &&
           Resolve(library, "MPI_Info_get", info_get_);
  }

  bool running() const override {
    int begun = 0;
    int over = 0;
    return initialized_(&begun) == 0 && begun != 0 && finalized_(&over) == 0 && over == 0;
  }
  bool Max(MpiHandle communicator, const uint64_t* values, uint64_t* greatest, int count,
           Waits waits) const override {
    Count(Counter::kRankExchanges);
    Handle request{};
    if (Abi::kTurns && waits == Waits::kSleeping) {
      return iallreduce_(values, greatest, count, abi_.unsigned_long, abi_.max,
                         Abi::Of(communicator), &request) == 0 &&
             Complete(request);
    }
    return allreduce_(values, greatest, count, abi_.unsigned_long, abi_.max,
                      Abi::Of(communicator)) == 0;
  }
  bool Gather(MpiHandle communicator, const uint64_t* values, uint64_t* all, int count,
              Waits waits) const override {
    Count(Counter::kRankExchanges);
    Handle request{};
    if (Abi::kTurns && waits == Waits::kSleeping) {
      return iallgather_(values, count, abi_.unsigned_long, all, count, abi_.unsigned_long,
                         Abi::Of(communicator), &request) == 0 &&
             Complete(request);
    }
    return allgather_(values, count, abi_.unsigned_long, all, count, abi_.unsigned_long,
                      Abi::Of(communicator)) == 0;
  }
  bool Place(MpiHandle communicator, int& rank, int& ranks) const override {
    return comm_rank_(Abi::Of(communicator), &rank) == 0 &&
           comm_size_(Abi::Of(communicator), &ranks) == 0;
  }
  void Free(MpiHandle communicator) const override {
    Handle handle = Abi::Of(communicator);
    static_cast<void>(comm_free_(&handle));
  }
  std::string Hint(MpiHandle info, const char* key) const override {
    if (Abi::Of(info) == abi_.info_null) return {};
    char value[kLongestHint + 1] = {};
    int found = 0;
    if (info_get_(Abi::Of(info), key, kLongestHint, value, &found) != 0 || found == 0) return {};
    return value;
  }

 private:
  template <typename Function>
  static bool Resolve(void* library, const char* name, Function& function) {
    *reinterpret_cast<void**>(&function) = dlsym(library, name);
    return function != nullptr;
  }

  bool Complete(Handle request) const {
    alignas(16) std::byte status[kMostStatusBytes];
    const uint64_t begin_ns = NowNs();
    for (;;) {
      int done = 0;
      if (test_(&request, &done, status) != 0) return false;
      if (done != 0) return true;
      SleepAfter(NowNs() - begin_ns);
    }
  }

  Abi abi_;
  int (*initialized_)(int*) = nullptr;
  int (*finalized_)(int*) = nullptr;
  int (*allreduce_)(const void*, void*, int, Handle type, Handle op, Handle communicator) = nullptr;
  int (*allgather_)(const void*, int, Handle type, void*, int, Handle type2,
                    Handle communicator) = nullptr;
  int (*iallreduce_)(const void*, void*, int, Handle type, Handle op, Handle communicator,
                     Handle* request) = nullptr;
  int (*iallgather_)(const void*, int, Handle type, void*, int, Handle type2, Handle communicator,
                     Handle* request) = nullptr;
  int (*test_)(Handle* request, int* done, void* status) = nullptr;
  int (*comm_rank_)(Handle communicator, int*) = nullptr;
  int (*comm_size_)(Handle communicator, int*) = nullptr;
  int (*comm_free_)(Handle* communicator) = nullptr;
  int (*info_get_)(Handle info, const char* key, int size, char* value, int* found) = nullptr;
};

// Several libhdf5 of one process may use it; it stays.
template <typename Abi>
const Mpi* Make(void* library) {
  auto* const made = new MpiOf<Abi>;
  if (made->Find(library)) return made;
  delete made;
  return nullptr;
}

bool IsMpichFamily(void* library) {
  int (*version)(char*, int*) = nullptr;
  *reinterpret_cast<void**>(&version) = dlsym(library, "MPI_Get_library_version");
  if (version == nullptr) return false;
  // The ABI that MPI 5 defines has other constants, whoever made the library.
  Dl_info found{};
  if (dladdr(reinterpret_cast<void*>(version), &found) != 0 && found.dli_fname != nullptr &&
      std::strstr(found.dli_fname, "libmpi_abi") != nullptr) {
    return false;
  }
  char text[8192] = {};  // MPI_MAX_LIBRARY_VERSION_STRING of this family
  int length = 0;
  if (version(text, &length) != 0) return false;
  for (const char* const name : {"MPICH", "Intel(R) MPI", "MVAPICH"}) {
    if (std::strstr(text, name) != nullptr) return true;
  }
  return false;
}

}  // namespace

const Mpi* Mpi::FoundIn(void* handle) {
  static_assert(sizeof(unsigned long) == sizeof(uint64_t));
  if (dlsym(handle, "MPI_Allreduce") == nullptr) return nullptr;
  if (dlsym(handle, "ompi_mpi_comm_world") != nullptr) return Make<OpenMpiAbi>(handle);
  return IsMpichFamily(handle) ? Make<MpichAbi>(handle) : nullptr;
}

}  // namespace tidelane::h5
