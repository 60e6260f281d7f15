#include "vol/info.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>

#include "engine/engine.h"
#include "h5/error.h"
#include "vol/connector.h"
#include "vol/lifetime.h"

namespace tidelane::vol {

namespace {

constexpr char kNative[] = "under_vol=0;under_info={}";

const Info& Of(const void* info) { return *static_cast<const Info*>(info); }

// The choice that `pointer` is; nullptr when it is none of ours.
const FileChoice* Find(const LibraryState& library, const void* pointer) {
  if (pointer == nullptr || library.file_choices == nullptr) return nullptr;
  for (const FileChoice& choice : *library.file_choices) {
    if (&choice == pointer) return &choice;
  }
  return nullptr;
}

// The kept choice with the same text; nullptr when there are too many.
FileChoice* Keep(LibraryState& library, FileChoice choice) {
  if (library.file_choices == nullptr) library.file_choices = new std::deque<FileChoice>;
  std::deque<FileChoice>& kept = *library.file_choices;
  const auto same = std::ranges::find(kept, choice.text, &FileChoice::text);
  if (same != kept.end()) return &*same;
  if (kept.size() == kMostChoices) return nullptr;
  return &kept.emplace_back(std::move(choice));
}

std::string TextOf(const LibraryState& library, const void* info) {
  const FileChoice* choice = Find(library, Of(info).under_vol_info);
  return choice == nullptr ? std::string() : choice->text;
}

bool IsNative(LibraryState& library, hid_t connector) {
  H5VL_class_value_t value = -1;
  return library.hdf5().VLget_value(connector, &value) >= 0 && value == h5::kNativeValue;
}

bool NamesUs(LibraryState& library, hid_t fapl) {
  hid_t connector = h5::kNoId;
  if (library.hdf5().Pget_vol_id(fapl, &connector) < 0) return false;
  return IsOurConnector(library, h5::OwnedId(library.hdf5(), connector));
}

// `settings` becomes what under_vol_info is to be: null when the text has no settings.
Status Read(LibraryState& library, const char* text, void*& settings) {
  FileChoice choice;
  settings = nullptr;
  Status status = ReadFileChoice(text == nullptr ? "" : text, Engine::Get().config(), choice);
  if (!status.ok() || choice.text.empty()) return status;
  settings = Keep(library, std::move(choice));
  if (settings != nullptr) return {};
  return Status::Failed(ENOSPC, "keep yet another combination of settings for files");
}

}  // namespace

bool IsOurConnector(LibraryState& library, const h5::OwnedId& connector) {
  H5VL_class_value_t value = -1;
  return connector.valid() && library.hdf5().VLget_value(connector.get(), &value) >= 0 &&
         (value == kTidelaneValue || value == kAsyncValue);
}

void* InfoCopy(LibraryState& library, const void* info) {
  WatchClose(library);
  const Info& from = Of(info);
  if (!IsNative(library, from.under_vol_id)) {
    h5::PushError(library.hdf5(),
                  "Tidelane stacks on the native connector only: under_vol_id must be its id");
    return nullptr;
  }
  if (from.under_vol_info != nullptr && Find(library, from.under_vol_info) == nullptr) {
    h5::PushError(library.hdf5(),
                  "Tidelane stacks on the native connector only, which has no info: "
                  "under_vol_info must be null, or what H5VLconnector_str_to_info put there");
    return nullptr;
  }
  auto* copy = new (std::nothrow) Info(from);
  if (copy != nullptr) library.hdf5().Iinc_ref(copy->under_vol_id);
  return copy;
}

herr_t InfoCompare(LibraryState& library, int* order, const void* left, const void* right) {
  *order = TextOf(library, left).compare(TextOf(library, right));
  return 0;
}

herr_t InfoFree(LibraryState& library, void* info) {
  const h5::KeepErrorStack keep(library.hdf5());
  library.hdf5().Idec_ref(static_cast<Info*>(info)->under_vol_id);
  delete static_cast<Info*>(info);
  return 0;
}

herr_t InfoToString(LibraryState& library, const void* info, char** text) {
  std::string whole = kNative;
  if (const std::string settings = TextOf(library, info); !settings.empty()) {
    whole += ";" + settings;
  }
  *text = static_cast<char*>(library.hdf5().allocate_memory(whole.size() + 1, false));
  if (*text == nullptr) return -1;
  std::memcpy(*text, whole.c_str(), whole.size() + 1);
  return 0;
}

herr_t InfoFromString(LibraryState& library, const char* text, void** info) {
  WatchClose(library);
  *info = nullptr;
  void* settings = nullptr;
  // What is wrong with the process's own settings, the string in HDF5_VOL_CONNECTOR included, is said where files are
  // opened (vol/file.h): a failure here would leave HDF5 half initialized.
  const bool refused_later = !Engine::Get().config_status().ok();
  if (const Status status = Read(library, text, settings); !status.ok() && !refused_later) {
    h5::PushError(library.hdf5(), status);
    return -1;
  }
  auto* made = new (std::nothrow) Info{library.hdf5().AcquireNativeId(), settings};
  *info = made;
  return made == nullptr || made->under_vol_id < 0 ? -1 : 0;
}

const FileSettings* SettingsOf(LibraryState& library, hid_t fapl) {
  h5::Library& hdf5 = library.hdf5();
  const h5::KeepErrorStack keep(hdf5);
  void* info = nullptr;
  if (!NamesUs(library, fapl) || hdf5.Pget_vol_info(fapl, &info) < 0 || info == nullptr) {
    return nullptr;
  }
  const FileChoice* choice = Find(library, Of(info).under_vol_info);
  InfoFree(library, info);
  return choice == nullptr ? nullptr : &choice->settings;
}

}  // namespace tidelane::vol
