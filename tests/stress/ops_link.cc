// Operations on groups and links: hard, soft, external, rename, delete, listings.
#include <algorithm>

#include "stress/op.h"
#include "stress/side.h"

namespace tidelane::stress {
namespace {

bool plan_group(Rng& rng, const Catalog& catalog, Op& op) {
  if (!pick_open_file(rng, catalog, op, true)) return false;
  const FileState& file = catalog.files[op.file];
  if (file.groups.size() >= 10) return false;
  op.path = fresh_path(rng, file, "g");
  op.variant = rng.chance(30) ? 1 : 0;  // 1: track creation order
  op.async = rng.chance(25);
  return true;
}

void run_group(Side& side, const Op& op, Outcome& out) {
  const Hid gcpl(H5Pcreate(H5P_GROUP_CREATE));
  if (op.variant == 1) {
    H5Pset_link_creation_order(gcpl, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
  }
  const hid_t file = side.file(op.file);
  const Hid group(op.async ? H5Gcreate_async(file, op.path.c_str(), H5P_DEFAULT, gcpl, H5P_DEFAULT,
                                             side.event_set())
                           : H5Gcreate2(file, op.path.c_str(), H5P_DEFAULT, gcpl, H5P_DEFAULT));
  out.call("H5Gcreate", group);
}

void commit_group(Catalog& catalog, const Op& op) {
  catalog.files[op.file].groups.push_back(op.path);
}

enum LinkKind { kHard, kSoft, kDangling, kExternal };

bool plan_link(Rng& rng, const Catalog& catalog, Op& op) {
  op.variant = static_cast<int>(rng.below(4));
  op.async = rng.chance(25);
  if (op.variant == kDangling) {
    if (!pick_open_file(rng, catalog, op, true)) return false;
    op.path = "/nowhere/at/all";
  } else if (op.variant == kExternal) {
    if (!pick_open_file(rng, catalog, op, true)) return false;
    op.other = 1 - op.file;
    const FileState& target = catalog.files[op.other];
    if (target.datasets.empty()) return false;
    op.dataset = rng.pick(target.datasets);
    op.path = op.dataset.path;
    op.attribute = target.disk;  // where the other file lies at this moment
  } else if (!pick_dataset(rng, catalog, op, true)) {
    return false;
  }
  const FileState& file = catalog.files[op.file];
  if (file.datasets.size() >= 24 || file.links.size() >= 10) return false;
  op.path2 = fresh_path(rng, file, "l");
  return true;
}

void run_link(Side& side, const Op& op, Outcome& out) {
  const hid_t file = side.file(op.file);
  const hid_t es = side.event_set();
  const char* from = op.path.c_str();
  const char* to = op.path2.c_str();
  herr_t rc = -1;
  if (op.variant == kHard) {
    rc = op.async ? H5Lcreate_hard_async(file, from, file, to, H5P_DEFAULT, H5P_DEFAULT, es)
                  : H5Lcreate_hard(file, from, file, to, H5P_DEFAULT, H5P_DEFAULT);
  } else if (op.variant == kExternal) {
    rc = H5Lcreate_external(op.attribute.c_str(), from, file, to, H5P_DEFAULT, H5P_DEFAULT);
  } else {
    rc = op.async ? H5Lcreate_soft_async(from, file, to, H5P_DEFAULT, H5P_DEFAULT, es)
                  : H5Lcreate_soft(from, file, to, H5P_DEFAULT, H5P_DEFAULT);
  }
  out.call("H5Lcreate", rc);
}

void commit_link(Catalog& catalog, const Op& op) {
  FileState& file = catalog.files[op.file];
  if (op.variant == kDangling) {
    file.links.push_back(op.path2);
    return;
  }
  Dataset alias = op.dataset;
  alias.path = op.path2;
  file.datasets.push_back(std::move(alias));
}

bool pick_any_path(Rng& rng, const Catalog& catalog, Op& op) {
  if (!pick_open_file(rng, catalog, op, true)) return false;
  const FileState& file = catalog.files[op.file];
  const auto dice = rng.below(100);
  if (dice < 70 && !file.datasets.empty()) {
    op.path = rng.pick(file.datasets).path;
  } else if (dice < 85 && !file.links.empty()) {
    op.path = rng.pick(file.links);
  } else if (!file.groups.empty()) {
    op.path = rng.pick(file.groups);
  } else {
    return false;
  }
  return true;
}

bool plan_delete(Rng& rng, const Catalog& catalog, Op& op) {
  op.async = rng.chance(25);
  return pick_any_path(rng, catalog, op);
}

void run_delete(Side& side, const Op& op, Outcome& out) {
  side.forget_path(op.file, op.path);
  const hid_t file = side.file(op.file);
  out.call("H5Ldelete", op.async
                            ? H5Ldelete_async(file, op.path.c_str(), H5P_DEFAULT, side.event_set())
                            : H5Ldelete(file, op.path.c_str(), H5P_DEFAULT));
}

void commit_delete(Catalog& catalog, const Op& op) { catalog.files[op.file].remove(op.path); }

bool plan_rename(Rng& rng, const Catalog& catalog, Op& op) {
  if (!pick_any_path(rng, catalog, op)) return false;
  op.path2 = fresh_path(rng, catalog.files[op.file], "m");
  // A group moved under itself would disappear from the catalog's tree.
  return op.path2.compare(0, op.path.size(), op.path) != 0;
}

void run_rename(Side& side, const Op& op, Outcome& out) {
  side.forget_path(op.file, op.path);
  const hid_t file = side.file(op.file);
  out.call("H5Lmove",
           H5Lmove(file, op.path.c_str(), file, op.path2.c_str(), H5P_DEFAULT, H5P_DEFAULT));
}

void commit_rename(Catalog& catalog, const Op& op) {
  catalog.files[op.file].rename(op.path, op.path2);
}

herr_t list_link(hid_t, const char* name, const H5L_info2_t* info, void* out) {
  *static_cast<std::string*>(out) +=
      Outcome::name_of(name) + " " + std::to_string(info->type) + "\n";
  return 0;
}

herr_t list_object(hid_t, const char* name, const H5O_info2_t* info, void* out) {
  *static_cast<std::string*>(out) += Outcome::name_of(name) + " " + std::to_string(info->type) +
                                     " " + std::to_string(info->rc) + " " +
                                     std::to_string(info->num_attrs) + "\n";
  return 0;
}

bool plan_list(Rng& rng, const Catalog& catalog, Op& op) {
  op.variant = rng.chance(50) ? 1 : 0;
  return pick_open_file(rng, catalog, op, false);
}

void run_list(Side& side, const Op& op, Outcome& out) {
  std::string text;
  const hid_t file = side.file(op.file);
  const bool ok =
      op.variant == 1
          ? out.call("H5Ovisit", H5Ovisit3(file, H5_INDEX_NAME, H5_ITER_INC, list_object, &text,
                                           H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS))
          : out.call("H5Lvisit", H5Lvisit2(file, H5_INDEX_NAME, H5_ITER_INC, list_link, &text));
  if (ok) out.bytes("read listing", std::move(text));
}

bool plan_exists(Rng& rng, const Catalog& catalog, Op& op) {
  if (!pick_open_file(rng, catalog, op, false)) return false;
  const FileState& file = catalog.files[op.file];
  op.path = !file.datasets.empty() && rng.chance(60) ? rng.pick(file.datasets).path
                                                     : fresh_path(rng, file, "d");
  return true;
}

void run_exists(Side& side, const Op& op, Outcome& out) {
  const hid_t file = side.file(op.file);
  out.number("H5Lexists", H5Lexists(file, op.path.c_str(), H5P_DEFAULT));
  out.number("H5Oexists_by_name", H5Oexists_by_name(file, op.path.c_str(), H5P_DEFAULT));
  H5G_info_t info{};
  if (out.call("H5Gget_info", H5Gget_info_by_name(file, "/", &info, H5P_DEFAULT))) {
    out.number("links in the root group", static_cast<int64_t>(info.nlinks));
  }
}

constexpr OpRow kRows[] = {
    {"group", 15, plan_group, run_group, commit_group},
    {"link", 20, plan_link, run_link, commit_link},
    {"delete", 50, plan_delete, run_delete, commit_delete},
    {"rename", 20, plan_rename, run_rename, commit_rename},
    {"list", 12, plan_list, run_list, nullptr},
    {"exists", 12, plan_exists, run_exists, nullptr},
};

}  // namespace

std::span<const OpRow> link_ops() { return kRows; }

}  // namespace tidelane::stress
