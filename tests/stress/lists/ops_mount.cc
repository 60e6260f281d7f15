// One of the two files mounted on a group of the other: what paths lead to changes, and HDF5 closes both when nobody needs either.
#include "stress/lists/lists.h"
#include "stress/side.h"

namespace tidelane::stress::lists {
namespace {

bool plan_mount(Rng& rng, const Catalog& catalog, Op& op) {
  if (!pick_open_file(rng, catalog, op, false) || !catalog.files[1 - op.file].open) return false;
  const FileState& file = catalog.files[op.file];
  if (file.groups.empty()) return false;
  op.path = rng.pick(file.groups);
  op.other = 1 - op.file;
  return true;
}

void run_mount(Side& side, const Op& op, Outcome& out) {
  out.call("H5Fmount",
           H5Fmount(side.file(op.file), op.path.c_str(), side.file(op.other), H5P_DEFAULT));
}

void run_unmount(Side& side, const Op& op, Outcome& out) {
  out.call("H5Funmount", H5Funmount(side.file(op.file), op.path.c_str()));
}

constexpr OpRow kRows[] = {
    {"mount", 12, plan_mount, run_mount, nullptr},
    {"unmount", 25, plan_mount, run_unmount, nullptr},
};

}  // namespace

std::span<const OpRow> mount_ops() {
  return asked_for('m') ? std::span<const OpRow>(kRows) : std::span<const OpRow>();
}

}  // namespace tidelane::stress::lists
