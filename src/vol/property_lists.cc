#include "vol/property_lists.h"

#include "engine/engine.h"
#include "h5/error.h"
#include "h5/protocol.h"
#include "vol/info.h"

namespace tidelane::vol {

namespace {

template <typename T>
std::optional<T> Property(h5::Library& hdf5, hid_t list, const char* name) {
  size_t size = 0;
  T value{};
  if (hdf5.Pexist(list, name) <= 0 || hdf5.Pget_size(list, name, &size) < 0 ||
      size != sizeof value || hdf5.Pget(list, name, &value) < 0) {
    return std::nullopt;
  }
  return value;
}

void SetDeferred(h5::Library& hdf5, hid_t fapl, const char* name, bool& deferred) {
  const int when = Property<int>(hdf5, fapl, name).value_or(TL_WHEN_AS_CONFIGURED);
  if (when != TL_WHEN_AS_CONFIGURED) deferred = when == TL_WHEN_DEFERRED;
}

// What the list does not say stays.
void SetJournal(h5::Library& hdf5, hid_t fapl, FileSettings& settings) {
  switch (Property<int>(hdf5, fapl, TL_PROPERTY_JOURNAL).value_or(TL_JOURNAL_AS_CONFIGURED)) {
    case TL_JOURNAL_OFF: settings.journal = Journal::kOff; break;
    case TL_JOURNAL_PROCESS: settings.journal = Journal::kProcess; break;
    case TL_JOURNAL_POWER: settings.journal = Journal::kPower; break;
  }
  settings.journal_required = Property<hbool_t>(hdf5, fapl, TL_PROPERTY_JOURNAL_REQUIRED)
                                  .value_or(settings.journal_required);
  const auto due = Property<tl_journal_commits>(hdf5, fapl, TL_PROPERTY_JOURNAL_COMMITS)
                       .value_or(tl_journal_commits{});
  if (due.flushes != 0 || due.time_us != 0) settings.journal_commits = {due.flushes, due.time_us};
}

}  // namespace

FileSettings SettingsFor(LibraryState& library, hid_t fapl) {
  h5::Library& hdf5 = library.hdf5();
  const h5::KeepErrorStack keep(hdf5);
  const FileSettings* info = SettingsOf(library, fapl);
  FileSettings settings = info != nullptr ? *info : Engine::Get().config();
  SetDeferred(hdf5, fapl, TL_PROPERTY_CLOSE, settings.close_deferred);
  SetDeferred(hdf5, fapl, TL_PROPERTY_FLUSH, settings.flush_deferred);
  if (const int how =
          Property<int>(hdf5, fapl, TL_PROPERTY_PUBLISH).value_or(TL_PUBLISH_AS_CONFIGURED);
      how != TL_PUBLISH_AS_CONFIGURED)
    settings.publish_atomic = how == TL_PUBLISH_ATOMIC;
  SetJournal(hdf5, fapl, settings);
  settings.implicit_sync =
      Property<hbool_t>(hdf5, fapl, TL_PROPERTY_DISABLE_IMPLICIT).value_or(false);
  settings.paused = Property<hbool_t>(hdf5, fapl, TL_PROPERTY_PAUSE).value_or(false);
  settings.delay_us = Property<uint64_t>(hdf5, fapl, TL_PROPERTY_DELAY).value_or(0);
  if (settings.copy_limit != UINT64_MAX) library.limits_copies = true;
  return settings;
}

Transfer internal::ReadTransfer(LibraryState& library, hid_t dxpl) {
  h5::Library& hdf5 = library.hdf5();
  if (library.default_properties == 0) {
    static_cast<void>(hdf5.Pget_nprops(library.default_dxpl, &library.default_properties));
  }
  size_t properties = 0;
  if (hdf5.Pget_nprops(dxpl, &properties) < 0 || properties == library.default_properties) {
    return {};
  }
  Transfer transfer;
  transfer.synchronous =
      Property<hbool_t>(hdf5, dxpl, TL_PROPERTY_DISABLE_IMPLICIT).value_or(false);
  transfer.paused = Property<hbool_t>(hdf5, dxpl, TL_PROPERTY_PAUSE);
  transfer.delay_us = Property<uint64_t>(hdf5, dxpl, TL_PROPERTY_DELAY);
  transfer.copy_limit = Property<uint64_t>(hdf5, dxpl, TL_PROPERTY_COPY_LIMIT);
  transfer.gpu_stream =
      reinterpret_cast<void*>(Property<uint64_t>(hdf5, dxpl, TL_PROPERTY_GPU_STREAM).value_or(0));
  return transfer;
}

}  // namespace tidelane::vol
