// Operations on whole files: every way to open, close and reopen them, also while a deferred close
// is still writing; flushes; what happens to names on disk meanwhile.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "stress/op.h"
#include "stress/side.h"

namespace tidelane::stress {
namespace {

enum OpenHow {
  kReadWrite,
  kReadOnly,
  kThroughSymlink,
  kTruncate,
  kExclusive,
  kUnlinkAndCreate,
  kDeleteAndCreate,
  kRenameAndOpen,
};

// With smaller pages, native HDF5 1.14 now and then takes an object header that is longer than a page
// from a page buffer without having read its end (H5C__load_entry, uninitialised memory).
constexpr int kPage = 65536;

AccessProfile draw_access(Rng& rng) {
  AccessProfile p;
  // Never semi: after a close that it refused, native HDF5's own state is broken.
  p.degree = rng.chance(60) ? 0 : static_cast<int>(rng.between(1, 2));
  p.libver = rng.chance(60) ? 0 : static_cast<int>(rng.between(1, 2));
  static constexpr int sieves[] = {0, 1024, 65536};
  if (rng.chance(30)) p.sieve = sieves[rng.below(3)];
  if (rng.chance(25)) p.page_buffer = kPage << rng.below(3);
  p.small_chunk_cache = rng.chance(40);
  p.evict_on_close = rng.chance(15);
  p.external_cache = rng.chance(20);
  if (rng.chance(10)) p.alignment = 512 << rng.below(4);
  return p;
}

CreateProfile draw_create(Rng& rng) {
  CreateProfile p;
  if (rng.chance(20)) p.userblock = 512 << rng.below(3);
  if (rng.chance(50)) {
    p.strategy = static_cast<int>(rng.below(4));
    if (p.strategy == H5F_FSPACE_STRATEGY_PAGE) p.page_size = kPage;
  }
  return p;
}

OpenHow draw_how(Rng& rng, bool exists) {
  if (!exists) return rng.chance(50) ? kTruncate : kExclusive;
  static constexpr struct {
    OpenHow how;
    unsigned weight;
  } table[] = {{kReadWrite, 62}, {kReadOnly, 8},        {kThroughSymlink, 8},  {kTruncate, 5},
               {kExclusive, 2},  {kUnlinkAndCreate, 3}, {kDeleteAndCreate, 3}, {kRenameAndOpen, 9}};
  uint64_t at = rng.below(100);
  for (const auto& row : table) {
    if (at < row.weight) return row.how;
    at -= row.weight;
  }
  return kReadWrite;
}

}  // namespace

bool creates(const Op& op) { return op.variant >= kTruncate && op.variant != kRenameAndOpen; }

namespace {

void plan_how(Rng& rng, const FileState& file, Op& op) {
  op.variant = draw_how(rng, file.exists);
  op.access = draw_access(rng);
  op.create = draw_create(rng);
  op.access.lists = op.create.lists = op.data_seed | 1;
  // A page buffer is refused without paged space: usually ask for what works.
  if (op.access.page_buffer > 0 && rng.chance(80)) {
    if (creates(op)) {
      op.create.strategy = H5F_FSPACE_STRATEGY_PAGE;
      op.create.page_size = kPage;
    } else {
      op.access.page_buffer = 0;
    }
  }
  op.path = file.disk;
  op.path2 = file.disk;
  if (op.variant == kRenameAndOpen) {
    op.path2 = "f" + std::to_string(op.file) + "." + std::to_string(rng.below(3)) + ".h5";
  }
  op.note = "degree " + std::to_string(op.access.degree) + " libver " +
            std::to_string(op.access.libver) + " sieve " + std::to_string(op.access.sieve) +
            " page buffer " + std::to_string(op.access.page_buffer) + " userblock " +
            std::to_string(op.create.userblock) + " strategy " + std::to_string(op.create.strategy);
}

bool plan_open(Rng& rng, const Catalog& catalog, Op& op) {
  op.file = static_cast<int>(rng.below(2));
  if (catalog.files[op.file].open) op.file = 1 - op.file;
  if (catalog.files[op.file].open) return false;
  plan_how(rng, catalog.files[op.file], op);
  op.async = rng.chance(15);
  return true;
}

hid_t create_file(Side& side, const Op& op, const std::string& path, unsigned flags) {
  const Hid fapl = side.access_list(op.access);
  const Hid fcpl = Side::create_list(op.create);
  return Outcome::explain(
      "H5Fcreate", op.async ? H5Fcreate_async(path.c_str(), flags, fcpl, fapl, side.event_set())
                            : H5Fcreate(path.c_str(), flags, fcpl, fapl));
}

hid_t open_file(Side& side, const Op& op, const std::string& path, unsigned flags) {
  const Hid fapl = side.access_list(op.access);
  return Outcome::explain("H5Fopen",
                          op.async ? H5Fopen_async(path.c_str(), flags, fapl, side.event_set())
                                   : H5Fopen(path.c_str(), flags, fapl));
}

void run_open(Side& side, const Op& op, Outcome& out) {
  const std::string path = side.disk_path(op.path);
  hid_t id = H5I_INVALID_HID;
  switch (static_cast<OpenHow>(op.variant)) {
    case kReadWrite: id = open_file(side, op, path, H5F_ACC_RDWR); break;
    case kReadOnly: id = open_file(side, op, path, H5F_ACC_RDONLY); break;
    case kThroughSymlink: {
      const std::string link = path + ".symlink";
      ::unlink(link.c_str());
      out.call("symlink", ::symlink(op.path.c_str(), link.c_str()));
      id = open_file(side, op, link, H5F_ACC_RDWR);
      break;
    }
    case kTruncate: id = create_file(side, op, path, H5F_ACC_TRUNC); break;
    case kExclusive: id = create_file(side, op, path, H5F_ACC_EXCL); break;
    case kUnlinkAndCreate:
      out.call("unlink", ::unlink(path.c_str()));
      id = create_file(side, op, path, H5F_ACC_EXCL);
      break;
    case kDeleteAndCreate: {
      const Hid fapl = side.access_list(AccessProfile{});
      out.call("H5Fdelete", H5Fdelete(path.c_str(), fapl));
      id = create_file(side, op, path, H5F_ACC_EXCL);
      break;
    }
    case kRenameAndOpen:
      out.call("rename", ::rename(path.c_str(), side.disk_path(op.path2).c_str()));
      id = open_file(side, op, side.disk_path(op.path2), H5F_ACC_RDWR);
      break;
  }
  side.set_file(op.file, id, op.access);
  out.call("open of the file", id);
}

void commit_open(Catalog& catalog, const Op& op) {
  FileState& file = catalog.files[op.file];
  if (creates(op)) file.clear_contents();
  file.disk = op.path2;
  file.exists = true;
  file.open = true;
  file.writable = op.variant != kReadOnly;
}

bool plan_close(Rng& rng, const Catalog& catalog, Op& op) {
  if (!pick_open_file(rng, catalog, op, false)) return false;
  op.async = rng.chance(25);
  op.keep_handles = rng.chance(15);
  return true;
}

}  // namespace

void run_close(Side& side, const Op& op, Outcome& out) {
  if (op.keep_handles) {
    side.orphan_datasets(op.file);
  } else {
    side.close_datasets(op.file);
    side.close_orphans();
  }
  const hid_t id = side.release_file(op.file);
  const bool closed =
      out.call("H5Fclose", op.async ? H5Fclose_async(id, side.event_set()) : H5Fclose(id));
  // If it was refused: is the identifier still good?
  const bool still_valid = H5Iis_valid(id) > 0;
  out.number("identifier valid after the close", still_valid);
  if (!closed && still_valid) side.set_file(op.file, id, side.profile(op.file));
}

void commit_close(Catalog& catalog, const Op& op) { catalog.files[op.file].open = false; }

namespace {

// What the steps before a failed open have already done to the name on disk.
void abandon_open(Catalog& catalog, const Op& op) {
  FileState& file = catalog.files[op.file];
  file.disk = op.path2;
  if (op.variant == kUnlinkAndCreate || op.variant == kDeleteAndCreate) file.exists = false;
}

// Close and open without anything between: the reopen meets the drain of a deferred close.
bool plan_reopen(Rng& rng, const Catalog& catalog, Op& op) {
  if (!plan_close(rng, catalog, op)) return false;
  op.keep_handles = false;
  plan_how(rng, catalog.files[op.file], op);
  return true;
}

void run_reopen(Side& side, const Op& op, Outcome& out) {
  run_close(side, op, out);
  if (side.file(op.file) < 0) run_open(side, op, out);
}

// If it was the close that was refused, the next open replaces the identifier.
void abandon_reopen(Catalog& catalog, const Op& op) {
  abandon_open(catalog, op);
  commit_close(catalog, op);
}

bool plan_flush(Rng& rng, const Catalog& catalog, Op& op) {
  if (!pick_open_file(rng, catalog, op, false)) return false;
  op.variant = static_cast<int>(rng.below(2));
  op.async = rng.chance(25);
  return true;
}

void run_flush(Side& side, const Op& op, Outcome& out) {
  const auto scope = op.variant == 0 ? H5F_SCOPE_LOCAL : H5F_SCOPE_GLOBAL;
  const hid_t file = side.file(op.file);
  out.call("H5Fflush",
           op.async ? H5Fflush_async(file, scope, side.event_set()) : H5Fflush(file, scope));
}

bool plan_orphans(Rng&, const Catalog&, Op&) { return true; }
void run_orphans(Side& side, const Op&, Outcome& out) {
  out.call("close of handles kept past their file", side.close_orphans());
}

// A second identifier of the open file takes the first one's place.
bool plan_second_open(Rng& rng, const Catalog& catalog, Op& op) {
  if (!pick_open_file(rng, catalog, op, false)) return false;
  op.path = catalog.files[op.file].disk;
  op.variant = static_cast<int>(rng.below(2));
  return true;
}

void run_second_open(Side& side, const Op& op, Outcome& out) {
  if (op.variant == 0) {
    const Hid again(H5Freopen(side.file(op.file)));
    out.call("H5Freopen", again);
    return;
  }
  const AccessProfile profile = side.profile(op.file);
  const Hid fapl = side.access_list(profile);
  unsigned intent = 0;
  H5Fget_intent(side.file(op.file), &intent);
  const hid_t again = H5Fopen(side.disk_path(op.path).c_str(), intent & H5F_ACC_RDWR, fapl);
  if (!out.call("second H5Fopen", again)) return;
  side.close_datasets(op.file);  // a strong close of the first identifier must not take them along
  out.call("H5Fclose of the first", H5Fclose(side.release_file(op.file)));
  side.set_file(op.file, again, profile);
}

bool plan_accessible(Rng& rng, const Catalog& catalog, Op& op) {
  op.file = static_cast<int>(rng.below(2));
  op.path = catalog.files[op.file].disk;
  return true;
}

void run_accessible(Side& side, const Op& op, Outcome& out) {
  const Hid fapl = side.access_list(AccessProfile{});
  const htri_t accessible = H5Fis_accessible(side.disk_path(op.path).c_str(), fapl);
  out.number("accessible", accessible);
  out.call("H5Fis_accessible", accessible);
}

bool plan_info(Rng& rng, const Catalog& c, Op& op) { return pick_open_file(rng, c, op, false); }

void run_info(Side& side, const Op& op, Outcome& out) {
  const hid_t file = side.file(op.file);
  // Sizes are not compared: what is allocated where depends on when caches were flushed.
  hsize_t size = 0;
  out.call("H5Fget_filesize", H5Fget_filesize(file, &size));
  out.call("H5Fget_freespace", H5Fget_freespace(file));
  out.number("open objects", H5Fget_obj_count(file, H5F_OBJ_ALL));
  unsigned intent = 0;
  out.call("H5Fget_intent", H5Fget_intent(file, &intent));
  out.number("intent", intent);
  char path[1024] = "";
  H5Fget_name(file, path, sizeof path);
  std::string name = path;
  if (name.compare(0, side.dir().size(), side.dir()) == 0) name = name.substr(side.dir().size());
  out.bytes("name of the file", name);
  const Hid fapl(H5Fget_access_plist(file));
  const Hid sec2(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_fapl_sec2(sec2);
  out.number("reported driver is sec2", H5Pget_driver(fapl) == H5Pget_driver(sec2));
}

constexpr OpRow kRows[] = {
    {"open", 120, plan_open, run_open, commit_open, abandon_open},
    {"close", 12, plan_close, run_close, commit_close},
    {"reopen", 14, plan_reopen, run_reopen, commit_open, abandon_reopen},
    {"flush", 18, plan_flush, run_flush, nullptr},
    {"close-orphans", 10, plan_orphans, run_orphans, nullptr},
    {"second-open", 4, plan_second_open, run_second_open, nullptr},
    {"accessible", 6, plan_accessible, run_accessible, nullptr},
    {"file-info", 12, plan_info, run_info, nullptr},
};

}  // namespace

std::span<const OpRow> file_ops() { return kRows; }

}  // namespace tidelane::stress
