#include "vol/lifetime.h"

#include <cstdlib>

#include "base/connector_info.h"
#include "engine/engine.h"
#include "h5/driver.h"
#include "h5/error.h"
#include "vol/call_inside.h"
#include "vol/chunk_capture.h"
#include "vol/control.h"
#include "vol/dataset_catalogue.h"
#include "vol/deflate_filter.h"
#include "vol/external_links.h"
#include "vol/ranks_filtered.h"
#include "vol/read_dataset.h"
#include "vol/selection_io_choice.h"

namespace tidelane::vol {

namespace {

// H5ESwait stops at the first failure; each call takes one failed operation out of the way.
herr_t WaitForEventSet(hid_t event_set, void* context) {
  h5::Library& hdf5 = static_cast<LibraryState*>(context)->hdf5();
  hbool_t failed = false;
  do {
    size_t in_progress = 0;
    failed = false;
    if (hdf5.ESwait(event_set, H5ES_WAIT_FOREVER, &in_progress, &failed) < 0) break;
  } while (failed);
  return 0;  // go on with the next one
}

void Forget(LibraryState& library) {
  library.hdf5().ForgetIds();
  library.default_dxpl = library.told_dxpl = library.independent_dxpl = h5::kNoId;
  library.plain_dcpl = h5::kNoId;
  ForgetDatasets(library);
  library.sieve_buffers = {};
  library.sieves_reads = library.sieve_windows = library.only_reads = false;
  library.default_properties = 0;
  library.operations = Operations();
  library.own_deflate = {};
  library.own_external_links = {};
  library.closing = library.started = false;
}

// HDF5 calls us from a call of its own: a worse place than one of ours, and better than none.
template <typename Work>
void EnterAtEnd(LibraryState& library, Work work) {
  if (!Enter(library, work)) work();
}

// At the process's exit: a libhdf5 that has lost count of its objects may end without letting its connectors end.
void CloseLeftOpen() {
  for (const LibraryState& library : internal::libraries) {
    if (library.closing) h5::Driver().close_left_open(library.slot);
  }
}

void AtClose(void* context) {
  LibraryState& library = *static_cast<LibraryState*>(context);
  library.watches_close = false;
  SetBeforeExit(CloseLeftOpen);
  if (CallQueue* const calls = library.call_queue; calls != nullptr) {
    EnterAtEnd(library, [&library, calls] {
      AnswerQueries(library, library.default_dxpl);
      calls->End();
      if (library.chunk_capture != nullptr) library.chunk_capture->End();
    });
  }
  if (RankChunks* const chunks = library.rank_chunks; chunks != nullptr) {
    EnterAtEnd(library, [chunks] { chunks->End(); });
  }
  library.closing = true;
  library.hdf5().Iiterate(H5I_EVENTSET, WaitForEventSet, &library);
  library.requests.WaitAll();
  static_cast<void>(Engine::Get().DrainAll(
      Wait::kExit));  // failures are told by the files' closes, and by Shutdown
  if (library.connectors == 0) Forget(library);
}

// A program that did not choose us, but has us in its plugin path, must not be told of us.
bool ChosenByEnvironment() { return NamesOurConnector(std::getenv("HDF5_VOL_CONNECTOR")); }

}  // namespace

void WatchClose(LibraryState& library) {
  if (library.watches_close || library.closing) return;
  const h5::KeepErrorStack keep(library.hdf5());
  library.watches_close = library.hdf5().atclose(AtClose, &library) >= 0;
}

void Start(LibraryState& library) {
  if (library.started) return;
  library.started = true;
  const h5::KeepErrorStack keep(library.hdf5());
  WatchClose(library);
  static_cast<void>(library.hdf5().Errors());  // other threads enter by them (CallInside)
  RegisterOperations(library);
  ReplaceDeflate(library);
  ReplaceExternalLinks(library);
}

herr_t Initialize(LibraryState& library, hid_t) {
  ++library.connectors;
  return 0;
}

herr_t Terminate(LibraryState& library) {
  if (--library.connectors > 0) return 0;
  if (!library.started && !ChosenByEnvironment()) {
    if (library.closing) Forget(library);
    return 0;
  }
  if (CallQueue* const calls = library.call_queue; calls != nullptr && AnyCallWork(library))
    EnterAtEnd(library, [&library, calls] {
      AnswerQueries(library, library.default_dxpl);
      calls->End();  // closes that had returned
    });
  library.requests.WaitAll();
  if (library.closing) h5::Driver().close_left_open(library.slot);
  static_cast<void>(Engine::Get().Shutdown());  // says on stderr what it came to
  if (library.closing) {
    Forget(library);
  } else if (library.started) {  // the program goes on without us
    RestoreDeflate(library);
    RestoreExternalLinks(library);
    library.started = false;
  }
  return 0;  // a failure here would make HDF5 keep the connector and try again for ever
}

}  // namespace tidelane::vol
