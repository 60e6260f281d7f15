#include "vol/control.h"

#include <algorithm>
#include <iterator>

#include "base/activity.h"
#include "h5/error.h"
#include "h5/protocol.h"
#include "h5/query_operation.h"
#include "vol/call_queue.h"
#include "vol/chunk_capture.h"
#include "vol/commit.h"
#include "vol/file.h"
#include "vol/find_file.h"
#include "vol/late_query.h"
#include "vol/ranks.h"

namespace tidelane::vol {

namespace {

void Register(h5::Library& hdf5, H5VL_subclass_t subclass, const char* name, int& number) {
  if (number >= 0 || hdf5.VLregister_opt_operation(subclass, name, &number) >= 0) return;
  // Another asynchronous connector in this process has registered the name. (HDF5 says so on stderr;
  // it would say so each time if we looked first.)
  if (hdf5.VLfind_opt_operation(subclass, name, &number) < 0) number = -1;
}

template <size_t n>
int KindAmong(const int (&numbers)[n], int operation) {
  const auto* found = std::find(std::begin(numbers), std::end(numbers), operation);
  return operation < 0 || found == std::end(numbers) ? -1 : static_cast<int>(found - numbers);
}

int KindOf(const LibraryState& library, H5I_type_t kind, int operation) {
  return kind == H5I_FILE ? KindAmong(library.operations.file, operation)
                          : KindAmong(library.operations.dataset, operation);
}

// As H5Fflush, by whichever driver.
herr_t Commit(LibraryState& library, void* file, hid_t dxpl) {
  H5VL_file_specific_args_t flush{};
  flush.op_type = H5VL_FILE_FLUSH;
  flush.args.flush.obj_type = H5I_FILE;
  flush.args.flush.scope = H5F_SCOPE_LOCAL;
  const CommitScope now;
  return FileSpecific(library, file, &flush, dxpl, nullptr);
}

herr_t Query(LibraryState& library, const tl_query_args& args) {
  const Status status = h5::Query(library.hdf5(), args, nullptr);
  if (status.ok()) return 0;
  h5::PushError(library.hdf5(), status);
  return -1;
}

}  // namespace

void RegisterOperations(LibraryState& library) {
  h5::Library& hdf5 = library.hdf5();
  const h5::KeepErrorStack keep(hdf5);
  Operations& ours = library.operations;
  constexpr const char* kFile[] = {TL_FILE_WAIT, TL_FILE_START, TL_FILE_PAUSE, TL_FILE_DELAY,
                                   TL_FILE_TEST};
  constexpr const char* kDataset[] = {TL_DATASET_WAIT, TL_DATASET_START, TL_DATASET_PAUSE,
                                      TL_DATASET_DELAY, TL_DATASET_TEST};
  for (int kind = 0; kind < Operations::kKinds; ++kind) {
    Register(hdf5, H5VL_SUBCLS_FILE, kFile[kind], ours.file[kind]);
    Register(hdf5, H5VL_SUBCLS_DATASET, kDataset[kind], ours.dataset[kind]);
  }
  Register(hdf5, H5VL_SUBCLS_FILE, TL_FILE_COMMIT, ours.file[Operations::kCommit]);
  Register(hdf5, H5VL_SUBCLS_FILE, TL_FILE_QUERY, ours.file[Operations::kQuery]);
  Register(hdf5, H5VL_SUBCLS_FILE, TL_FILE_QUERY_LATER, ours.file[Operations::kQueryLater]);
  Register(hdf5, H5VL_SUBCLS_REQUEST, TL_REQUEST_START, ours.request[Operations::kRequestStart]);
  Register(hdf5, H5VL_SUBCLS_REQUEST, TL_REQUEST_DEPENDENCY,
           ours.request[Operations::kRequestDependency]);
}

bool IsOurs(const LibraryState& library, H5I_type_t kind, int operation) {
  return KindOf(library, kind, operation) >= 0;
}

herr_t Operate(LibraryState& library, void* object, H5I_type_t kind,
               const H5VL_optional_args_t& args, hid_t dxpl, void** request) {
  if (KindOf(library, kind, args.op_type) == Operations::kCommit)
    return Commit(library, object, dxpl);
  if (KindOf(library, kind, args.op_type) == Operations::kQuery)
    return Query(library, *static_cast<const tl_query_args*>(args.args));
  if (KindOf(library, kind, args.op_type) == Operations::kQueryLater) {
    CallQueue::Of(library).NoteWriter();
    return QueryLater(library, FileOf(library, object, kind),
                      *static_cast<tl_query_later_args*>(args.args), request);
  }
  const std::shared_ptr<File> file = CapturedFileOf(library, object, kind);
  if (file == nullptr) {  // it runs natively: nothing is ever pending
    if (KindOf(library, kind, args.op_type) == Operations::kTest) {
      static_cast<tl_test_args*>(args.args)->stored = 1;
    }
    return 0;
  }
  DoReadyCallWork(library, dxpl);
  Status status;
  switch (KindOf(library, kind, args.op_type)) {
    case Operations::kWait:
      if (!DoCallWork(library, object, kind, dxpl)) return -1;
      file->reads().deferred_reads().AwaitAll();
      status = file->drainer().Drain(Wait::kRequest);
      break;
    case Operations::kStart: file->Start(); break;
    case Operations::kPause: file->SetPaused(true); break;
    case Operations::kDelay:
      file->SetDelay(static_cast<const tl_delay_args*>(args.args)->time_us);
      break;
    case Operations::kTest: {
      bool stored = false;
      status = file->drainer().Test(stored);
      if (file->reads().deferred_reads().any() ||
          (AnyCallWork(library) && (library.call_queue->Has(*file) || HasQuery(library, *file)))) {
        stored = false;
      }
      static_cast<tl_test_args*>(args.args)->stored = stored ? 1 : 0;
      break;
    }
  }
  if (status.ok()) return 0;
  h5::PushError(library.hdf5(), status);
  return -1;
}

herr_t QueryOptional(LibraryState& library, void* object, H5VL_subclass_t subclass, int operation,
                     uint64_t* flags) {
  const bool ours =
      (subclass == H5VL_SUBCLS_FILE && IsOurs(library, H5I_FILE, operation)) ||
      (subclass == H5VL_SUBCLS_DATASET && IsOurs(library, H5I_DATASET, operation)) ||
      (subclass == H5VL_SUBCLS_REQUEST && KindAmong(library.operations.request, operation) >= 0);
  if (!ours) {
    return library.hdf5().native().introspect_cls.opt_query(object, subclass, operation, flags);
  }
  *flags = H5VL_OPT_QUERY_SUPPORTED;
  if (operation != library.operations.file[Operations::kQueryLater] || subclass != H5VL_SUBCLS_FILE)
    *flags |= H5VL_OPT_QUERY_NO_ASYNC;
  return 0;
}

herr_t RequestOptional(LibraryState& library, void* request, H5VL_optional_args_t* args) {
  switch (KindAmong(library.operations.request, args->op_type)) {
    case Operations::kRequestStart:
      library.requests.Wait(*static_cast<Request*>(request), 0);
      return 0;
    case Operations::kRequestDependency:
      return 0;  // bytes are stored in program order where it matters, whatever depends on what
    default: break;
  }
  h5::PushError(library.hdf5(), "this operation on a request is not known to Tidelane");
  return -1;
}

}  // namespace tidelane::vol
