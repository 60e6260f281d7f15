#include "vol/lifetime.h"

#include <cstdlib>

#include "base/connector_info.h"
#include "engine/engine.h"
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
  h5::Library& hdf5 = static_cast<Instance*>(context)->hdf5();
  hbool_t failed = false;
  do {
    size_t in_progress = 0;
    failed = false;
    if (hdf5.ESwait(event_set, H5ES_WAIT_FOREVER, &in_progress, &failed) < 0) break;
  } while (failed);
  return 0;  // go on with the next one
}

void Forget(Instance& instance) {
  instance.hdf5().ForgetIds();
  instance.default_dxpl = instance.told_dxpl = h5::kNoId;
  instance.plain_dcpl = h5::kNoId;
  ForgetDatasets(instance);
  instance.sieve_buffers = {};
  instance.sieves_reads = instance.only_reads = false;
  instance.default_properties = 0;
  instance.operations = Operations();
  instance.own_deflate = {};
  instance.own_external_links = {};
  instance.closing = instance.started = false;
}

// HDF5 calls us from a call of its own: a worse place than one of ours, and better than none.
template <typename Work>
void EnterAtEnd(Instance& instance, Work work) {
  if (!Enter(instance, work)) work();
}

void AtClose(void* context) {
  Instance& instance = *static_cast<Instance*>(context);
  instance.watches_close = false;
  if (CallQueue* const calls = instance.call_queue; calls != nullptr) {
    EnterAtEnd(instance, [&instance, calls] {
      calls->End();
      if (instance.chunk_capture != nullptr) instance.chunk_capture->End();
    });
  }
  if (RankChunks* const chunks = instance.rank_chunks; chunks != nullptr) {
    EnterAtEnd(instance, [chunks] { chunks->End(); });
  }
  instance.closing = true;
  instance.hdf5().Iiterate(H5I_EVENTSET, WaitForEventSet, &instance);
  instance.requests.WaitAll();
  static_cast<void>(Engine::Get().DrainAll(
      Wait::kExit));  // failures are told by the files' closes, and by Shutdown
  if (instance.connectors == 0) Forget(instance);
}

// A program that did not choose us, but has us in its plugin path, must not be told of us.
bool ChosenByEnvironment() { return NamesOurConnector(std::getenv("HDF5_VOL_CONNECTOR")); }

}  // namespace

void WatchClose(Instance& instance) {
  if (instance.watches_close || instance.closing) return;
  const h5::KeepErrorStack keep(instance.hdf5());
  instance.watches_close = instance.hdf5().atclose(AtClose, &instance) >= 0;
}

void Start(Instance& instance) {
  if (instance.started) return;
  instance.started = true;
  const h5::KeepErrorStack keep(instance.hdf5());
  WatchClose(instance);
  static_cast<void>(instance.hdf5().Errors());  // other threads enter by them (CallInside)
  RegisterOperations(instance);
  ReplaceDeflate(instance);
  ReplaceExternalLinks(instance);
}

herr_t Initialize(Instance& instance, hid_t) {
  ++instance.connectors;
  return 0;
}

herr_t Terminate(Instance& instance) {
  if (--instance.connectors > 0) return 0;
  if (!instance.started && !ChosenByEnvironment()) {
    if (instance.closing) Forget(instance);
    return 0;
  }
  instance.requests.WaitAll();
  static_cast<void>(Engine::Get().Shutdown());  // says on stderr what it came to
  if (instance.closing) {
    Forget(instance);
  } else if (instance.started) {  // the program goes on without us
    RestoreDeflate(instance);
    RestoreExternalLinks(instance);
    instance.started = false;
  }
  return 0;  // a failure here would make HDF5 keep the connector and try again for ever
}

}  // namespace tidelane::vol
