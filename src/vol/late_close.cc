#include "vol/late_close.h"

#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "base/counters.h"
#include "device/identity.h"
#include "engine/engine.h"
#include "extent/test_hooks.h"
#include "h5/before_open.h"
#include "vol/call_inside.h"
#include "vol/call_queue.h"
#include "vol/find_file.h"
#include "vol/work_holders.h"

namespace tidelane::vol {

namespace {

class LateClose final : public CallWork {
 public:
  LateClose(LibraryState& library, std::shared_ptr<File> for_file, void* object,
            const HowToClose& how)
      : CallWork(std::move(for_file)), library_(library), object_(object), how_(how) {}

  bool closes() const override { return true; }
  bool ready() const override { return true; }  // when all before it is done
  bool unwanted() const override { return false; }
  void Help() override {}
  void Await() override {}
  uint64_t bytes() const override { return 0; }
  bool Do(Attempt attempt) override {
    if (attempt != Attempt::kBehindFailed)
      closed_ = how_.now(library_, object_, library_.default_dxpl) >= 0;
    return closed_;
  }
  // Nobody will try again: what cannot be stored the engine keeps, and tells of it.
  void Gone() override {
    if (!closed_) how_.at_end(library_, object_, library_.default_dxpl);
  }
  const char* what(Attempt) const override { return "close, after its close had returned,"; }

 private:
  LibraryState& library_;
  void* const object_;
  const HowToClose how_;
  bool closed_ = false;
};

// Whether HDF5 may have the file open for another one's sake, or another for its: mounted, in a cache of external files, for an open virtual dataset. Its
// identifier is not all that keeps it then, or others' closes depend on its own.
bool IsTied(LibraryState& library, const File& ours, void* file, hid_t dxpl) {
  if (library.mounts || Engine::Get().OpenedInside(ours)) return true;
  const h5::KeepErrorStack keep(library.hdf5());
  H5VL_file_get_args_t get{};
  get.op_type = H5VL_FILE_GET_FAPL;
  if (library.hdf5().native().file_cls.get(file, &get, dxpl, nullptr) < 0) return true;
  unsigned external_files = 1;
  const hid_t fapl = get.args.get_fapl.fapl_id;
  if (library.hdf5().Pget(fapl, "efc_size", &external_files) < 0) external_files = 1;
  library.hdf5().Pclose(fapl);
  return external_files != 0;
}

// Whether a close of it need not wait. One that gets its name by its close has it when that returns.
bool MayWait(const File& file) {
  return file.settings().close_deferred && file.traits().at_its_name && !file.drainer().failing();
}

void FinishClosesOf(int slot, const char* path) {
  if (!AnyClosesHeld() || MutationEnabled("late_close")) return;
  struct stat found;
  if (stat(path, &found) != 0) return;
  for (const WorkHolder& holder : WorkHolders()) {
    if (!holder.closes || holder.file->identity() != IdentityIn(found)) continue;
    LibraryState& library = internal::libraries[holder.slot];
    // Another copy of HDF5, without a lock, may be in use by the thread that has left this; the file is locked then.
    if (holder.slot != slot && !library.hdf5().thread_safe() &&
        pthread_equal(holder.writer, pthread_self()) == 0)
      continue;
    static_cast<void>(Enter(library, [&] { CallQueue::Of(library).FinishAllOf(*holder.file); }));
  }
}

}  // namespace

bool MayCloseLate(LibraryState& library, void* file, hid_t dxpl) {
  if (!AnyCallWork(library)) return false;
  CallQueue& calls = CallQueue::Of(library);
  calls.DoReady(dxpl);
  const std::shared_ptr<File> ours = FileOf(library, file, H5I_FILE);
  // A query is answered by an identifier of its file.
  return ours != nullptr && !calls.troubled() && calls.Has(*ours) && MayWait(*ours) &&
         !HasQuery(library, *ours) && !IsTied(library, *ours, file, dxpl);
}

bool CloseLate(LibraryState& library, void* file, const HowToClose& how) {
  try {
    CallQueue::Of(library).Add(
        std::make_unique<LateClose>(library, FileOf(library, file, H5I_FILE), file, how));
  } catch (const std::bad_alloc&) {
    return false;
  }
  Count(Counter::kClosesLate);
  return true;
}

void RegisterLateCloses() { h5::RegisterBeforeOpen(&FinishClosesOf); }

}  // namespace tidelane::vol
