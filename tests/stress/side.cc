#include "stress/side.h"

#include <cstdlib>

namespace tidelane::stress {
namespace {

constexpr size_t kMostOpenDatasets = 12;

}  // namespace

bool lends_buffers() {
  static const bool lends = std::getenv("STRESS_LEND") != nullptr;
  return lends;
}

Side::Side(std::string dir, Through through) : dir_(std::move(dir)), through_(through) {
  event_set_ = Hid(H5EScreate());
}

Side::~Side() {
  size_t left = 0;
  hbool_t failed = false;
  H5ESwait(event_set_, H5ES_WAIT_FOREVER, &left, &failed);
  H5ESclose(event_set_.release());
}

Hid Side::access_list(const AccessProfile& profile) {
  Hid fapl(H5Pcreate(H5P_FILE_ACCESS));
  if (through_ == Through::Native) {
    // Not H5VL_NATIVE, nor H5FD_SEC2 elsewhere: HDF5 2 has other functions behind these words.
    const Hid native(H5VLget_connector_id_by_value(H5VL_NATIVE_VALUE));
    H5Pset_vol(fapl, native, nullptr);
    H5Pset_fapl_sec2(fapl);
  }
  if (profile.degree > 0) {
    H5Pset_fclose_degree(fapl, profile.degree == 1 ? H5F_CLOSE_WEAK : H5F_CLOSE_STRONG);
  }
  if (profile.libver == 1) H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  if (profile.libver == 2) H5Pset_libver_bounds(fapl, H5F_LIBVER_V18, H5F_LIBVER_LATEST);
  if (profile.sieve >= 0) H5Pset_sieve_buf_size(fapl, static_cast<size_t>(profile.sieve));
  if (profile.page_buffer > 0) {
    H5Pset_page_buffer_size(fapl, static_cast<size_t>(profile.page_buffer), 0, 0);
  }
  if (profile.small_chunk_cache) H5Pset_cache(fapl, 0, 11, 4096, 0.5);
  if (profile.evict_on_close) H5Pset_evict_on_close(fapl, true);
  if (profile.external_cache) H5Pset_elink_file_cache_size(fapl, 4);
  if (profile.alignment > 0) H5Pset_alignment(fapl, 256, static_cast<hsize_t>(profile.alignment));
  lists::more_access(fapl, profile.lists, heard_);
  return fapl;
}

Hid Side::create_list(const CreateProfile& profile) {
  Hid fcpl(H5Pcreate(H5P_FILE_CREATE));
  if (profile.userblock > 0) H5Pset_userblock(fcpl, static_cast<hsize_t>(profile.userblock));
  if (profile.strategy >= 0) {
    // Free space is never persistent: native HDF5 1.14 writes behind the end of its buffer when it serializes sections
    // that have grown (H5FS__sinfo_serialize_sect_cb), and loops for ever in a paged file (H5FS__sect_merge).
    H5Pset_file_space_strategy(fcpl, static_cast<H5F_fspace_strategy_t>(profile.strategy), false,
                               1);
    if (profile.page_size > 0) {
      H5Pset_file_space_page_size(fcpl, static_cast<hsize_t>(profile.page_size));
    }
  }
  lists::more_creation(fcpl, profile.lists);
  return fcpl;
}

hid_t Side::dataset(int file, const std::string& path, bool async) {
  const auto key = std::make_pair(file, path);
  if (const auto it = datasets_.find(key); it != datasets_.end()) return it->second.get();
  if (datasets_.size() >= kMostOpenDatasets) {
    refused_closes_ += datasets_.begin()->second.reset() < 0;
    datasets_.erase(datasets_.begin());
  }
  const Hid dapl = lists::dataset_access(path, ++opened_datasets_);
  const hid_t id = async ? H5Dopen_async(files_[file], path.c_str(), dapl, event_set_)
                         : H5Dopen2(files_[file], path.c_str(), dapl);
  if (id >= 0) datasets_[key] = Hid(id);
  return id;
}

void Side::close_datasets(int file) {
  for (auto it = datasets_.begin(); it != datasets_.end();) {
    if (it->first.first == file) {
      refused_closes_ += it->second.reset() < 0;
      it = datasets_.erase(it);
    } else {
      ++it;
    }
  }
}

void Side::close_everything_but_files() {
  for (int file = 0; file < 2; ++file) close_datasets(file);
  refused_closes_ += close_orphans() < 0;
}

void Side::close_dataset(int file, const std::string& path) {
  const auto found = datasets_.find({file, path});
  if (found == datasets_.end()) return;
  if (found->second.reset() < 0) ++refused_closes_;
  datasets_.erase(found);
}

void Side::forget_path(int file, const std::string& path) {
  for (auto it = datasets_.begin(); it != datasets_.end();) {
    const auto& name = it->first.second;
    const bool inside = name.compare(0, path.size(), path) == 0;
    if (it->first.first == file && inside) {
      orphans_.push_back(std::move(it->second));
      it = datasets_.erase(it);
    } else {
      ++it;
    }
  }
}

void Side::orphan_datasets(int file) { forget_path(file, ""); }

void Side::flush_files() {
  for (const Hid& file : files_) {
    if (file.get() >= 0) H5Fflush(file.get(), H5F_SCOPE_GLOBAL);
  }
  for (const Hid& dataset : orphans_) H5Fflush(dataset.get(), H5F_SCOPE_GLOBAL);
}

void Side::flush_datasets() {
  for (const auto& [name, dataset] : datasets_) H5Dflush(dataset.get());
  for (const Hid& dataset : orphans_) H5Dflush(dataset.get());
}

herr_t Side::close_orphans() {
  herr_t rc = 0;
  for (Hid& id : orphans_) rc = id.reset() < 0 ? -1 : rc;
  orphans_.clear();
  return rc;
}

void Side::keep(Buffer buffer, bool compare) {
  pending_.push_back({std::move(buffer), compare});  // moving keeps the address of the contents
}

void Side::wait_all(Outcome& outcome) {
  size_t in_progress = 0;
  hbool_t failed = false;
  const herr_t rc = H5ESwait(event_set_, H5ES_WAIT_FOREVER, &in_progress, &failed);
  for (Pending& one : pending_) {
    if (one.compare) {
      outcome.bytes("read by an asynchronous call", one.buffer.take());
    } else {
      one.buffer.scribble();
    }
  }
  pending_.clear();
  outcome.number("operations left in the event set", static_cast<int64_t>(in_progress));
  outcome.number("event set failed", failed);
  outcome.call("H5ESwait", rc);
}

}  // namespace tidelane::stress
