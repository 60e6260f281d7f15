// Operations on attributes of datasets, groups and the root group.
#include <algorithm>

#include "stress/op.h"
#include "stress/side.h"

namespace tidelane::stress {
namespace {

std::string draw_owner(Rng& rng, const FileState& file) {
  if (!file.datasets.empty() && rng.chance(60)) return rng.pick(file.datasets).path;
  if (!file.groups.empty() && rng.chance(60)) return rng.pick(file.groups);
  return "/";
}

// Not the *_by_name calls for creating: an attribute that HDF5 1.14 makes that way may write into a
// namesake on the root group (H5O__attr_write_cb overruns it).
Hid open_owner(Side& side, const Op& op) {
  return Hid(H5Oopen(side.file(op.file), op.path.c_str(), H5P_DEFAULT));
}

bool plan_create(Rng& rng, const Catalog& catalog, Op& op) {
  if (!pick_open_file(rng, catalog, op, true)) return false;
  op.path = draw_owner(rng, catalog.files[op.file]);
  op.attribute = "a" + std::to_string(rng.below(14));
  op.dataset.kind = static_cast<Kind>(rng.below(kKinds));
  op.dims[0] = rng.chance(15) ? rng.between(500, 3000) : rng.between(1, 30);
  op.mem = memory_for(op.dataset.kind, rng.next());
  op.async = rng.chance(20);
  op.note = std::string(name(op.dataset.kind)) + " elements " + std::to_string(op.dims[0]);
  return true;
}

void run_create(Side& side, const Op& op, Outcome& out) {
  const hsize_t n = op.dims[0];
  const Hid space(n == 1 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &n, nullptr));
  const Hid type = file_type(op.dataset.kind);
  const Hid owner = open_owner(side, op);
  if (!out.call("open of the attribute's owner", owner)) return;
  const char* name = op.attribute.c_str();
  Hid attr(op.async ? H5Acreate_async(owner, name, type, space, H5P_DEFAULT, H5P_DEFAULT,
                                      side.event_set())
                    : H5Acreate2(owner, name, type, space, H5P_DEFAULT, H5P_DEFAULT));
  if (!out.call("H5Acreate", attr)) return;
  Buffer buffer(op.mem, n);
  buffer.fill(op.data_seed);
  const Hid memory = memory_type(op.mem);
  if (op.async) {
    out.call("H5Awrite_async", H5Awrite_async(attr, memory, buffer.data(), side.event_set()));
    buffer.scribble();
    H5Aclose_async(attr.release(), side.event_set());
  } else {
    out.call("H5Awrite", H5Awrite(attr, memory, buffer.data()));
  }
}

void commit_create(Catalog& catalog, const Op& op) {
  catalog.files[op.file].attributes.push_back(
      {op.path, op.attribute, op.dataset.kind, static_cast<size_t>(op.dims[0])});
}

bool pick_attribute(Rng& rng, const Catalog& catalog, Op& op, bool for_writing) {
  if (!pick_open_file(rng, catalog, op, for_writing)) return false;
  const FileState& file = catalog.files[op.file];
  if (file.attributes.empty()) return false;
  const Attribute& a = rng.pick(file.attributes);
  op.path = a.owner;
  op.attribute = a.name;
  op.dataset.kind = a.kind;
  op.dims[0] = a.elements;
  op.mem = memory_for(a.kind, rng.next());
  return true;
}

Hid open_attribute(Side& side, const Op& op) {
  return Hid(H5Aopen(open_owner(side, op), op.attribute.c_str(), H5P_DEFAULT));
}

bool plan_write(Rng& rng, const Catalog& c, Op& op) { return pick_attribute(rng, c, op, true); }
bool plan_read(Rng& rng, const Catalog& c, Op& op) { return pick_attribute(rng, c, op, false); }

void run_write(Side& side, const Op& op, Outcome& out) {
  const Hid attr = open_attribute(side, op);
  if (!out.call("H5Aopen", attr)) return;
  const Hid space(H5Aget_space(attr));
  Buffer buffer(op.mem, static_cast<size_t>(H5Sget_simple_extent_npoints(space)));
  buffer.fill(op.data_seed);
  out.call("H5Awrite", H5Awrite(attr, memory_type(op.mem), buffer.data()));
}

void run_read(Side& side, const Op& op, Outcome& out) {
  const Hid attr = open_attribute(side, op);
  if (!out.call("H5Aopen", attr)) return;
  const Hid space(H5Aget_space(attr));
  const auto n = static_cast<size_t>(H5Sget_simple_extent_npoints(space));
  out.number("elements", static_cast<int64_t>(n));
  out.number("storage", static_cast<int64_t>(H5Aget_storage_size(attr)));
  Buffer buffer(op.mem, n);
  buffer.prepare_for_read();
  if (out.call("H5Aread", H5Aread(attr, memory_type(op.mem), buffer.data()))) {
    out.bytes("read by H5Aread", buffer.take());
  }
}

bool plan_delete(Rng& rng, const Catalog& catalog, Op& op) {
  op.variant = rng.chance(30) ? 1 : 0;  // 1: rename
  if (!pick_attribute(rng, catalog, op, true)) return false;
  // A name used once: HDF5 1.14 does not refuse a rename to an existing name, and then overruns.
  if (op.variant == 1) op.path2 = "r" + std::to_string(op.index);
  return true;
}

void run_delete(Side& side, const Op& op, Outcome& out) {
  const hid_t file = side.file(op.file);
  if (op.variant == 1) {
    out.call("H5Arename", H5Arename_by_name(file, op.path.c_str(), op.attribute.c_str(),
                                            op.path2.c_str(), H5P_DEFAULT));
  } else {
    out.call("H5Adelete",
             H5Adelete_by_name(file, op.path.c_str(), op.attribute.c_str(), H5P_DEFAULT));
  }
}

void commit_delete(Catalog& catalog, const Op& op) {
  auto& attributes = catalog.files[op.file].attributes;
  const auto same = [&](const Attribute& a) {
    return a.owner == op.path && a.name == op.attribute;
  };
  if (op.variant == 1) {
    for (auto& a : attributes) {
      if (same(a)) a.name = op.path2;
    }
  } else {
    std::erase_if(attributes, same);
  }
}

herr_t list_one(hid_t, const char* name, const H5A_info_t* info, void* out) {
  *static_cast<std::string*>(out) +=
      std::string(name) + " " + std::to_string(info->data_size) + "\n";
  return 0;
}

bool plan_list(Rng& rng, const Catalog& catalog, Op& op) {
  if (!pick_open_file(rng, catalog, op, false)) return false;
  op.path = draw_owner(rng, catalog.files[op.file]);
  return true;
}

void run_list(Side& side, const Op& op, Outcome& out) {
  std::string names;
  hsize_t position = 0;
  if (out.call("H5Aiterate",
               H5Aiterate_by_name(side.file(op.file), op.path.c_str(), H5_INDEX_NAME, H5_ITER_INC,
                                  &position, list_one, &names, H5P_DEFAULT))) {
    out.bytes("read list of attributes", std::move(names));
  }
}

constexpr OpRow kRows[] = {
    {"attribute-create", 40, plan_create, run_create, commit_create},
    {"attribute-write", 25, plan_write, run_write, nullptr},
    {"attribute-read", 30, plan_read, run_read, nullptr},
    {"attribute-delete", 22, plan_delete, run_delete, commit_delete},
    {"attribute-list", 10, plan_list, run_list, nullptr},
};

}  // namespace

std::span<const OpRow> attribute_ops() { return kRows; }

}  // namespace tidelane::stress
