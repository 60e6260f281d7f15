// Operations with lists for links: external links followed in every way, groups made on the way to a name, names in UTF-8.
#include "stress/lists/lists.h"
#include "stress/side.h"

namespace tidelane::stress::lists {
namespace {

constexpr const char* kFollowed = "/followed";

// What an external link's callback answers.
struct Answer {
  Heard* heard;
  uint64_t how;
};

herr_t asked(const char*, const char* group, const char* linked_file, const char* object,
             unsigned* flags, hid_t fapl, void* data) {
  const Answer& answer = *static_cast<Answer*>(data);
  // Names as they are in the link: the folder is not among them.
  answer.heard->links +=
      1 + static_cast<int64_t>(std::string(group).size() + std::string(linked_file).size() +
                               std::string(object).size());
  if (answer.how == 1) return -1;
  if (answer.how == 2) *flags = H5F_ACC_RDONLY;
  if (answer.how == 3) H5Pset_sieve_buf_size(fapl, 512);
  return 0;
}

bool plan_follow(Rng& rng, const Catalog& catalog, Op& op) {
  if (!pick_open_file(rng, catalog, op, true)) return false;
  op.other = 1 - op.file;
  const FileState& target = catalog.files[op.other];
  if (target.datasets.empty()) return false;
  op.dataset = rng.pick(target.datasets);
  op.path = kFollowed;
  op.path2 = op.dataset.path;
  op.attribute = target.disk;
  op.mem = memory_for(op.dataset.kind, rng.next());
  const bool number = op.dataset.kind != Kind::VlString && op.dataset.kind != Kind::Compound;
  const bool plain = number && op.dataset.layout != Layout::Virtual;
  op.variant = plain && rng.chance(30) ? 1 : 0;  // 1: written through the link first
  op.access.degree =
      1;  // a strong one would close what is open in the file, under its other handles
  op.access.sieve = rng.chance(50) ? 4096 : -1;
  return true;
}

void draw_link_access(hid_t list, Side& side, const Op& op, Answer& answer) {
  Rng rng = stream(op.data_seed, 12);
  if (rng.chance(40)) H5Pset_elink_fapl(list, side.access_list(op.access));
  answer.how = rng.below(6);
  if (rng.chance(50)) H5Pset_elink_cb(list, asked, &answer);
  if (rng.chance(40)) {
    H5Pset_elink_prefix(list, (side.dir() + (rng.chance(50) ? "" : "/nowhere")).c_str());
  }
  const unsigned flags[] = {H5F_ACC_RDWR, H5F_ACC_RDONLY, H5F_ACC_DEFAULT};
  if (rng.chance(40)) H5Pset_elink_acc_flags(list, flags[rng.below(3)]);
  if (rng.chance(20)) H5Pset_nlinks(list, rng.below(3));
}

void transfer_all(const Op& op, hid_t dset, Outcome& out) {
  const std::optional<size_t> elements = elements_of(dset, out);
  if (!elements.has_value()) return;
  const Hid type = memory_type(op.mem);
  Buffer buffer(op.mem, *elements);
  if (op.variant == 1) {
    buffer.fill(op.data_seed);
    out.call("H5Dwrite through an external link",
             H5Dwrite(dset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer.data()));
  }
  buffer.prepare_for_read();
  if (out.call("H5Dread through an external link",
               H5Dread(dset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer.data()))) {
    out.bytes("read by H5Dread", buffer.take());
  }
}

void run_follow(Side& side, const Op& op, Outcome& out) {
  const hid_t file = side.file(op.file);
  if (H5Lexists(file, kFollowed, H5P_DEFAULT) > 0) {
    out.call("H5Ldelete of the old link", H5Ldelete(file, kFollowed, H5P_DEFAULT));
  }
  if (!out.call("H5Lcreate_external",
                H5Lcreate_external(op.attribute.c_str(), op.path2.c_str(), file, kFollowed,
                                   H5P_DEFAULT, H5P_DEFAULT))) {
    return;
  }
  const bool as_dataset = (op.data_seed & 16) != 0;  // whose lists are lists for links, too
  const Hid list(H5Pcreate(as_dataset ? H5P_DATASET_ACCESS : H5P_LINK_ACCESS));
  if (as_dataset) H5Pset_efile_prefix(list, "${ORIGIN}");
  Answer answer{&side.heard(), 0};
  draw_link_access(list, side, op, answer);
  const Hid dset(as_dataset ? H5Dopen2(file, kFollowed, list) : H5Oopen(file, kFollowed, list));
  if (!out.call("open through an external link", dset)) return;
  out.number("kind of object", H5Iget_type(dset));
  if (H5Iget_type(dset) == H5I_DATASET) transfer_all(op, dset, out);
}

bool plan_deep(Rng& rng, const Catalog& catalog, Op& op) {
  if (!pick_open_file(rng, catalog, op, true)) return false;
  op.variant = static_cast<int>(rng.below(6));
  const FileState& file = catalog.files[op.file];
  op.path2 = file.datasets.empty() ? "/" : rng.pick(file.datasets).path;
  op.path = "/deep" + std::to_string(rng.below(2)) + "/i" + std::to_string(rng.below(3)) + "/";
  op.path += rng.chance(50) ? "k" : "\u00fc";
  op.path += std::to_string(rng.below(4));
  if (op.variant == 5) op.path = op.path.substr(0, op.path.rfind('/'));
  return true;
}

Hid link_creation(const Op& op) {
  Rng rng = stream(op.data_seed, 13);
  Hid lcpl(H5Pcreate(H5P_LINK_CREATE));
  H5Pset_create_intermediate_group(lcpl, rng.chance(80));
  if (rng.chance(60)) H5Pset_char_encoding(lcpl, rng.chance(70) ? H5T_CSET_UTF8 : H5T_CSET_ASCII);
  return lcpl;
}

Hid group_creation(const Op& op) {
  Rng rng = stream(op.data_seed, 14);
  Hid gcpl(H5Pcreate(H5P_GROUP_CREATE));
  if (rng.chance(30)) H5Pset_local_heap_size_hint(gcpl, 64 << rng.below(4));
  if (rng.chance(30)) H5Pset_est_link_info(gcpl, 2, 20);
  if (rng.chance(30)) H5Pset_link_phase_change(gcpl, 2, 1);
  if (rng.chance(30)) {
    H5Pset_link_creation_order(gcpl, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
  }
  return gcpl;
}

void make(Side& side, const Op& op, Outcome& out) {
  const hid_t file = side.file(op.file);
  const Hid lcpl = link_creation(op);
  const char* const name = op.path.c_str();
  const char* const to = op.path2.c_str();
  if (op.variant <= 1) {
    const Hid group(H5Gcreate2(file, name, lcpl, group_creation(op), H5P_DEFAULT));
    out.call("H5Gcreate", group);
  } else if (op.variant == 2) {
    out.call("H5Lcreate_soft", H5Lcreate_soft(to, file, name, lcpl, H5P_DEFAULT));
  } else if (op.variant == 3) {
    out.call("H5Lcopy", H5Lcopy(file, to, file, name, lcpl, H5P_DEFAULT));
  } else {
    const Hid space(H5Screate(H5S_SCALAR));
    const Hid dset(H5Dcreate2(file, name, H5T_STD_I32LE, space, lcpl, H5P_DEFAULT, H5P_DEFAULT));
    const int value = static_cast<int>(op.data_seed & 0xffff);
    out.call("H5Dcreate", dset);
    out.call("H5Dwrite", H5Dwrite(dset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value));
  }
}

void name_attribute(hid_t object, const Op& op, Outcome& out) {
  const Hid acpl(H5Pcreate(H5P_ATTRIBUTE_CREATE));
  H5Pset_char_encoding(acpl, (op.data_seed & 32) != 0 ? H5T_CSET_UTF8 : H5T_CSET_ASCII);
  const Hid space(H5Screate(H5S_SCALAR));
  const Hid attr(H5Acreate2(object, "\u00e4", H5T_STD_I32LE, space, acpl, H5P_DEFAULT));
  if (!out.call("H5Acreate", attr)) return;
  H5A_info_t info{};
  out.call("H5Aget_info", H5Aget_info(attr, &info));
  out.number("encoding of the attribute's name", info.cset);
}

void run_deep(Side& side, const Op& op, Outcome& out) {
  const hid_t file = side.file(op.file);
  if (op.variant == 5) {
    out.call("H5Ldelete", H5Ldelete(file, op.path.c_str(), H5P_DEFAULT));
    return;
  }
  make(side, op, out);
  if (!out.ok) return;
  H5L_info2_t info{};
  out.call("H5Lget_info", H5Lget_info2(file, op.path.c_str(), &info, H5P_DEFAULT));
  out.number("encoding of the link's name", info.cset);
  out.number("type of the link", info.type);
  if (op.variant > 1) return;
  const Hid group(H5Gopen2(file, op.path.c_str(), H5P_DEFAULT));
  name_attribute(group, op, out);
}

constexpr OpRow kRows[] = {
    {"follow", 30, plan_follow, run_follow, nullptr},
    {"deep", 20, plan_deep, run_deep, nullptr},
};

}  // namespace

std::span<const OpRow> link_ops() {
  return asked_for('l') ? std::span<const OpRow>(kRows) : std::span<const OpRow>();
}

}  // namespace tidelane::stress::lists
