// Copies of whole groups with everything that a copy's list can ask for. What was copied has a name that the catalog does not know.
#include "stress/lists/lists.h"
#include "stress/side.h"

namespace tidelane::stress::lists {
namespace {

constexpr const char* kReferences = "/references";

// The dataset is a member of the group: what a reference leads to elsewhere is copied under a name made of an address.
bool refers_inside(const Op& op) {
  return op.dataset.path.rfind(op.path + "/", 0) == 0 &&
         op.dataset.path.find('/', op.path.size() + 1) == std::string::npos;
}

bool plan_copy(Rng& rng, const Catalog& catalog, Op& op) {
  if (!pick_open_file(rng, catalog, op, true)) return false;
  const FileState& file = catalog.files[op.file];
  op.other = static_cast<int>(rng.below(2));
  if (!catalog.files[op.other].open || !catalog.files[op.other].writable) op.other = op.file;
  if (file.datasets.empty()) return false;
  op.dataset = rng.pick(file.datasets);
  op.variant = static_cast<int>(rng.below(2));  // 1: a dataset refers to another first
  op.path = file.groups.empty() ? op.dataset.path : rng.pick(file.groups);
  for (const Dataset& d : file.datasets) {
    op.dataset = d;
    if (rng.chance(50) && refers_inside(op)) break;
  }
  op.path2 = "/copied" + std::to_string(rng.below(2));
  return true;
}

// External links are never expanded: native HDF5 1.14 leaves the group open through which it went, and crashes at its end.
unsigned draw_flags(const Op& op, Rng& rng) {
  static constexpr unsigned flags[] = {
      H5O_COPY_SHALLOW_HIERARCHY_FLAG, H5O_COPY_EXPAND_SOFT_LINK_FLAG,
      H5O_COPY_EXPAND_REFERENCE_FLAG,  H5O_COPY_WITHOUT_ATTR_FLAG,
      H5O_COPY_PRESERVE_NULL_FLAG,     H5O_COPY_MERGE_COMMITTED_DTYPE_FLAG};
  unsigned drawn = 0;
  for (const unsigned flag : flags) drawn |= rng.chance(35) ? flag : 0;
  return op.variant == 0 || refers_inside(op) ? drawn : drawn & ~H5O_COPY_EXPAND_REFERENCE_FLAG;
}

// Gone at the end of the operation: what a reference leads to once its object is deleted is anybody's guess.
void refer(hid_t file, const Op& op, Outcome& out) {
  const std::string name = op.path + kReferences;
  hobj_ref_t references[2] = {};  // the second one to nothing
  out.call("H5Rcreate", H5Rcreate(references, file, op.dataset.path.c_str(), H5R_OBJECT, -1));
  if (!out.ok) return;
  const hsize_t two = 2;
  const Hid space(H5Screate_simple(1, &two, nullptr));
  const Hid dset(H5Dcreate2(file, name.c_str(), H5T_STD_REF_OBJ, space, H5P_DEFAULT, H5P_DEFAULT,
                            H5P_DEFAULT));
  if (!out.call("H5Dcreate of references", dset)) return;
  out.call("H5Dwrite of references",
           H5Dwrite(dset, H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, H5P_DEFAULT, references));
}

herr_t list_object(hid_t, const char* name, const H5O_info2_t* info, void* out) {
  *static_cast<std::string*>(out) += std::string(name) + " " + std::to_string(info->type) + " " +
                                     std::to_string(info->num_attrs) + "\n";
  return 0;
}

// Whether they lead anywhere after the copy, and to what.
void look_at_references(hid_t file, const std::string& name, Outcome& out) {
  const Hid dset(H5Dopen2(file, name.c_str(), H5P_DEFAULT));
  if (!out.call("H5Dopen of copied references", dset)) return;
  hobj_ref_t references[2] = {};
  out.call("H5Dread of copied references",
           H5Dread(dset, H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, H5P_DEFAULT, references));
  for (const hobj_ref_t& reference : references) {
    out.number("a reference to something", reference != 0);
    H5O_type_t type = H5O_TYPE_UNKNOWN;
    if (reference == 0) continue;
    out.call("H5Rget_obj_type", H5Rget_obj_type2(dset, H5R_OBJECT, &reference, &type));
    out.number("type of what is referred to", type);
  }
}

void remove(hid_t file, const std::string& path, Outcome& out) {
  if (H5Lexists(file, path.c_str(), H5P_DEFAULT) <= 0) return;
  out.call("H5Ldelete", H5Ldelete(file, path.c_str(), H5P_DEFAULT));
}

// Nothing may be open: see plan_copy of ops_dataset.cc.
void run_copy(Side& side, const Op& op, Outcome& out) {
  const hid_t file = side.file(op.file);
  const hid_t target = side.file(op.other);
  side.wait_all(out);
  const bool refers = op.variant == 1 && op.path != op.dataset.path;
  if (refers) refer(file, op, out);
  side.close_everything_but_files();
  remove(target, op.path2, out);
  Rng rng = stream(op.data_seed, 15);
  const Hid ocpypl(H5Pcreate(H5P_OBJECT_COPY));
  H5Pset_copy_object(ocpypl, draw_flags(op, rng));
  const Hid lcpl(H5Pcreate(H5P_LINK_CREATE));
  H5Pset_char_encoding(lcpl, H5T_CSET_UTF8);
  const bool copied =
      out.call("H5Ocopy", H5Ocopy(file, op.path.c_str(), target, op.path2.c_str(), ocpypl, lcpl));
  if (!copied) {
    if (refers) remove(file, op.path + kReferences, out);
    return;
  }
  std::string text;
  out.call("H5Ovisit of the copy",
           H5Ovisit_by_name3(target, op.path2.c_str(), H5_INDEX_NAME, H5_ITER_INC, list_object,
                             &text, H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS, H5P_DEFAULT));
  out.bytes("read listing of the copy", std::move(text));
  if (!refers) return;
  look_at_references(target, op.path2 + kReferences, out);
  remove(target, op.path2, out);
  remove(file, op.path + kReferences, out);
}

constexpr OpRow kRows[] = {{"copy-tree", 8, plan_copy, run_copy, nullptr}};

}  // namespace

std::span<const OpRow> copy_ops() {
  return asked_for('l') ? std::span<const OpRow>(kRows) : std::span<const OpRow>();
}

}  // namespace tidelane::stress::lists
