#include "faults/program.h"

#include <algorithm>
#include <fstream>
#include <numeric>

namespace tidelane::testing {
namespace {

constexpr hsize_t kSmallChunk = 256;   // HDF5 compresses those itself,
constexpr hsize_t kLargeChunk = 8192;  // and lanes these
constexpr hsize_t kLentChunk = 16384;  // what is made of these is lent to the file, not copied
constexpr size_t kWorthFiltering = 1000;
constexpr size_t kWorthLending = 100'000;

Hid compressed(hsize_t chunk) {
  Hid list(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_chunk(list, 1, &chunk);
  H5Pset_deflate(list, 3);
  return list;
}

Hid access_of(const Manner& manner) {
  Hid list(H5Pcreate(H5P_FILE_ACCESS));
  if (manner.latest_format) H5Pset_libver_bounds(list, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  return list;
}

Hid line(hsize_t count, hsize_t most) { return Hid(H5Screate_simple(1, &count, &most)); }

Hid part_of(const Hid& whole, hsize_t from, hsize_t count) {
  Hid part(H5Scopy(whole));
  H5Sselect_hyperslab(part, H5S_SELECT_SET, &from, nullptr, &count, nullptr);
  return part;
}

// What the event set says about its failures: a text of all stacks.
std::string failures_of(hid_t events, size_t count) {
  std::vector<H5ES_err_info_t> infos(count);
  size_t cleared = 0;
  EXPECT_GE(H5ESget_err_info(events, count, infos.data(), &cleared), 0) << error_text();
  EXPECT_EQ(cleared, count);
  std::string text;
  for (size_t i = 0; i < cleared; ++i) {
    text += std::string(infos[i].api_name) + ":\n" + error_text(infos[i].err_stack_id);
  }
  EXPECT_GE(H5ESfree_err_info(cleared, infos.data()), 0);
  return text;
}

}  // namespace

Program::Program(std::string failing, std::string healthy, const Manner& manner,
                 std::function<bool()> space_returns)
    : manner_(manner), space_returns_(std::move(space_returns)) {
  for (int steps = 0; steps <= kSteps; ++steps) contents_.push_back(contents_after(steps));
  failing_.path = std::move(failing);
  failing_.may_fail = true;
  healthy_.path = std::move(healthy);
}

void Program::run() {
  File* const files[] = {&failing_, &healthy_};
  for (File* file : files) create_file(*file);
  for (int i = 0; i < kSteps - 1; ++i) {
    for (File* file : files) step(*file);
    for (File* file : files) flush(*file);
  }
  if (!manner_.closes_files) return;
  for (File* file : files) close(*file);
  reopen_file(failing_);
  step(failing_);
  close(failing_);
  for (const File* file : files) {
    if (manner_.event_sets && !gave_up_) {
      EXPECT_GE(H5ESclose(file->events), 0) << error_text();
    }
  }
}

void Program::step(File& file) {
  if (gave_up_ && file.may_fail) return;
  constexpr void (Program::* kStep[kSteps])(File&) = {&Program::first, &Program::second,
                                                      &Program::third, &Program::fourth};
  const int now = file.steps++;
  (this->*kStep[now])(file);
}

void Program::create_file(File& file) {
  if (manner_.event_sets) file.events = H5EScreate();
  const Hid access = access_of(manner_);
  file.id = attempt(file, "H5Fcreate", [&] {
    return H5Fcreate_async(file.path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access, file.events);
  });
  file.open = file.id >= 0;
}

void Program::reopen_file(File& file) {
  const Hid access = access_of(manner_);
  file.id = attempt(file, "H5Fopen", [&] {
    return H5Fopen_async(file.path.c_str(), H5F_ACC_RDWR, access, file.events);
  });
  file.open = file.id >= 0;
  if (!gave_up_) expect_contents_after(file.steps, file.id);
}

void Program::first(File& file) {
  annotate(file, "/", "title");
  make_group(file, "g");
  put(file, "a");
  annotate(file, "a", "units");
  put(file, "c", compressed(kSmallChunk));
  put(file, "l", compressed(kLargeChunk));
  put_tiles(file);
}

void Program::second(File& file) {
  overwrite_part(file, "a", 700, 1500);
  grow(file, "c");
  annotate(file, "a", "more");
  make_group(file, "g/h");
  for (int i = 0; i < 10; ++i) put(file, "g/h/d" + std::to_string(i));
}

void Program::third(File& file) {
  put(file, "big");
  attempt(file, "H5Ldelete",
          [&] { return H5Ldelete_async(file.id, "g/tiles", H5P_DEFAULT, file.events); });
}

void Program::fourth(File& file) {
  put(file, "late");
  grow(file, "c");
  grow(file, "l");
  overwrite_part(file, "a", 0, 3000);
}

void Program::put(File& file, const std::string& name, hid_t creation) {
  const std::vector<int>& values = contents_[file.steps].datasets.at(name);
  const Hid filtering = compressed(values.size() < kWorthLending ? kLargeChunk : kLentChunk);
  if (manner_.filters && values.size() >= kWorthFiltering) creation = filtering;
  const Hid space = line(values.size(), creation == H5P_DEFAULT ? values.size() : H5S_UNLIMITED);
  const hid_t dataset = attempt(file, "H5Dcreate", [&] {
    return H5Dcreate_async(file.id, name.c_str(), H5T_NATIVE_INT, space, H5P_DEFAULT, creation,
                           H5P_DEFAULT, file.events);
  });
  attempt(file, "H5Dwrite", [&] {
    return H5Dwrite_async(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data(),
                          file.events);
  });
  close_dataset(file, dataset);
}

// Tile after tile, far apart: each row of a tile is a piece of its own in the file.
void Program::put_tiles(File& file) {
  const std::vector<int>& values = contents_[file.steps].datasets.at("g/tiles");
  const hsize_t extent[] = {kTiles * kTile, kTiles * kTile};
  const hsize_t tile[] = {kTile, kTile};
  const Hid space(H5Screate_simple(2, extent, nullptr));
  const hid_t dataset = attempt(file, "H5Dcreate", [&] {
    return H5Dcreate_async(file.id, "g/tiles", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT,
                           H5P_DEFAULT, file.events);
  });
  for (hsize_t i = 0; i < kTiles * kTiles; ++i) {
    const hsize_t at = i * 4 % (kTiles * kTiles);
    const hsize_t from[] = {at / kTiles * kTile, at % kTiles * kTile};
    const Hid part(H5Scopy(space));
    H5Sselect_hyperslab(part, H5S_SELECT_SET, from, nullptr, tile, nullptr);
    attempt(file, "H5Dwrite", [&] {
      return H5Dwrite_async(dataset, H5T_NATIVE_INT, part, part, H5P_DEFAULT, values.data(),
                            file.events);
    });
  }
  close_dataset(file, dataset);
}

void Program::overwrite_part(File& file, const std::string& name, hsize_t from, hsize_t count) {
  const std::vector<int>& values = contents_[file.steps].datasets.at(name);
  const Hid part = part_of(line(values.size(), values.size()), from, count);
  const hid_t dataset = open_dataset(file, name);
  attempt(file, "H5Dwrite", [&] {
    return H5Dwrite_async(dataset, H5T_NATIVE_INT, part, part, H5P_DEFAULT, values.data(),
                          file.events);
  });
  close_dataset(file, dataset);
}

void Program::grow(File& file, const std::string& name) {
  const std::vector<int>& values = contents_[file.steps].datasets.at(name);
  const hsize_t had = contents_[file.steps - 1].datasets.at(name).size();
  const hsize_t has = values.size();
  const hid_t dataset = open_dataset(file, name);
  attempt(file, "H5Dset_extent", [&] { return H5Dset_extent_async(dataset, &has, file.events); });
  const Hid part = part_of(line(has, H5S_UNLIMITED), had, has - had);
  attempt(file, "H5Dwrite", [&] {
    return H5Dwrite_async(dataset, H5T_NATIVE_INT, part, part, H5P_DEFAULT, values.data(),
                          file.events);
  });
  close_dataset(file, dataset);
}

void Program::annotate(File& file, const std::string& object, const std::string& name) {
  const std::vector<int>& values = contents_[file.steps].attributes.at({object, name});
  const Hid space = line(values.size(), values.size());
  const hid_t attribute = attempt(file, "H5Acreate", [&] {
    return H5Acreate_by_name_async(file.id, object.c_str(), name.c_str(), H5T_NATIVE_INT, space,
                                   H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT, file.events);
  });
  attempt(file, "H5Awrite",
          [&] { return H5Awrite_async(attribute, H5T_NATIVE_INT, values.data(), file.events); });
  attempt(file, "H5Aclose", [&] { return H5Aclose_async(attribute, file.events); });
}

void Program::make_group(File& file, const std::string& name) {
  const hid_t group = attempt(file, "H5Gcreate", [&] {
    return H5Gcreate_async(file.id, name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT,
                           file.events);
  });
  attempt(file, "H5Gclose", [&] { return H5Gclose_async(group, file.events); });
}

hid_t Program::open_dataset(File& file, const std::string& name) {
  return attempt(file, "H5Dopen",
                 [&] { return H5Dopen_async(file.id, name.c_str(), H5P_DEFAULT, file.events); });
}

void Program::close_dataset(File& file, hid_t dataset) {
  attempt(file, "H5Dclose", [&] { return H5Dclose_async(dataset, file.events); });
}

int64_t Program::attempt(File& file, const char* what, const Call& call) {
  if (gave_up_ && file.may_fail) return H5I_INVALID_HID;
  int64_t result = call();
  if (result >= 0 || !after_failure(file, what, error_text())) return result;
  result = call();
  EXPECT_GE(result, 0) << what << " failed again, although there was space\n" << error_text();
  gave_up_ = result < 0;
  return result;
}

bool Program::after_failure(File& file, const std::string& what, const std::string& error) {
  EXPECT_TRUE(file.may_fail) << what << " failed on healthy storage\n" << error;
  ++told_;
  EXPECT_NE(error.find(file.path), std::string::npos) << what << " does not name the file\n"
                                                      << error;
  EXPECT_NE(error.find("errno"), std::string::npos) << what << " does not say why\n" << error;
  if (file.open) {
    EXPECT_GT(H5Iis_valid(file.id), 0) << what << " left no file to try again with";
  }
  gave_up_ = !space_returns_() || !manner_.tries_again;
  return !gave_up_;
}

bool Program::settle(File& file, const char* what) {
  if (!manner_.event_sets) return true;
  size_t left = 0;
  hbool_t failed = false;
  EXPECT_GE(H5ESwait(file.events, H5ES_WAIT_FOREVER, &left, &failed), 0) << error_text();
  if (!failed) {
    EXPECT_EQ(left, 0u) << what;
    return true;
  }
  // The wait stops at the first failure: the others come with more waits.
  while (H5ESget_count(file.events, &left) >= 0 && left != 0) {
    EXPECT_GE(H5ESwait(file.events, H5ES_WAIT_FOREVER, &left, &failed), 0) << error_text();
  }
  size_t count = 0;
  EXPECT_GE(H5ESget_err_count(file.events, &count), 0);
  EXPECT_GT(count, 0u);
  after_failure(file, what, failures_of(file.events, count));
  EXPECT_GE(H5ESclose(file.events), 0) << error_text();
  file.events = H5EScreate();  // a failed one takes no more operations
  return false;
}

void Program::flush(File& file) {
  if (gave_up_ && file.may_fail) return;
  attempt(file, "H5Fflush", [&] { return H5Fflush_async(file.id, H5F_SCOPE_GLOBAL, file.events); });
  bool promised = manner_.event_sets || manner_.flush_waits;
  if (!settle(file, "H5ESwait after H5Fflush_async")) {
    // The second attempt is the ordinary call.
    attempt(file, "H5Fflush", [&] { return H5Fflush(file.id, H5F_SCOPE_GLOBAL); });
    promised = manner_.flush_waits;
  }
  // In the newest format, a file that is open for writing says so, and nobody else would read it.
  if (promised && !gave_up_ && !manner_.latest_format) promise(file, "flush");
}

void Program::close(File& file) {
  if (gave_up_ && file.may_fail) return;
  attempt(file, "H5Fclose", [&] { return H5Fclose_async(file.id, file.events); });
  bool promised = manner_.event_sets || manner_.close_waits;
  if (!gave_up_) {
    EXPECT_LE(H5Iis_valid(file.id), 0) << "closed, and yet valid";
    file.open = false;
  }
  if (!settle(file, "H5ESwait after H5Fclose_async")) {
    // The identifier is gone, but who opens the file again finds what could not be stored.
    reopen_file(file);
    attempt(file, "H5Fflush", [&] { return H5Fflush(file.id, H5F_SCOPE_GLOBAL); });
    attempt(file, "H5Fclose", [&] { return H5Fclose(file.id); });
    promised = manner_.close_waits;
  }
  file.open = false;
  if (promised && !gave_up_) promise(file, "close");
}

void Program::promise(const File& file, const char* when) {
  if (!file.may_fail) return;
  const std::string copy = healthy_.path + "." + when + std::to_string(file.steps);
  std::ofstream(copy, std::ios::binary) << bytes_on_storage(file.path);
  promises_[copy] = file.steps;
}

void Program::save_promises(const std::string& list) const {
  std::ofstream out(list);
  for (const auto& [copy, steps] : promises_) out << steps << " " << copy << "\n";
}

void expect_promises_kept(const std::string& list) {
  std::ifstream in(list);
  EXPECT_TRUE(in.is_open()) << list;
  int steps = 0;
  std::string copy;
  while (in >> steps >> copy) {
    SCOPED_TRACE(copy);
    const Hid file = open(copy, H5F_ACC_RDONLY);
    if (file.valid()) expect_contents_after(steps, file);
  }
}

}  // namespace tidelane::testing
