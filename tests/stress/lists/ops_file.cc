// Operations for the sake of file lists: a file's image opened in memory, another metadata cache for an open file.
#include <vector>

#include "stress/lists/lists.h"
#include "stress/side.h"

namespace tidelane::stress::lists {
namespace {

bool plan_image(Rng& rng, const Catalog& catalog, Op& op) {
  if (!pick_dataset(rng, catalog, op, false)) return false;
  op.mem = memory_for(op.dataset.kind, rng.next());
  return op.dataset.layout !=
         Layout::Virtual;  // its source may be in a file that has no such name in memory
}

herr_t list_link(hid_t, const char* name, const H5L_info2_t* info, void* out) {
  *static_cast<std::string*>(out) +=
      Outcome::name_of(name) + " " + std::to_string(info->type) + "\n";
  return 0;
}

void look_into(hid_t image, const Op& op, Outcome& out) {
  std::string names;
  if (out.call("H5Lvisit of the image",
               H5Lvisit2(image, H5_INDEX_NAME, H5_ITER_INC, list_link, &names))) {
    out.bytes("read listing of the image", std::move(names));
  }
  const Hid dset(H5Dopen2(image, op.path.c_str(), H5P_DEFAULT));
  if (!out.call("H5Dopen in the image", dset)) return;
  const std::optional<size_t> elements = elements_of(dset, out);
  if (!elements.has_value()) return;
  Buffer buffer(op.mem, *elements);
  buffer.prepare_for_read();
  if (out.call("H5Dread in the image",
               H5Dread(dset, memory_type(op.mem), H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer.data()))) {
    out.bytes("read by H5Dread in the image", buffer.take());
  }
}

void run_image(Side& side, const Op& op, Outcome& out) {
  const hid_t file = side.file(op.file);
  if (!out.call("H5Fflush", H5Fflush(file, H5F_SCOPE_GLOBAL))) return;
  const ssize_t size = H5Fget_file_image(file, nullptr, 0);
  if (!out.call("size of the image", size)) return;
  std::vector<char> bytes(static_cast<size_t>(size));
  if (!out.call("H5Fget_file_image", H5Fget_file_image(file, bytes.data(), bytes.size()))) return;
  const Hid fapl = side.access_list(AccessProfile{});
  H5Pset_fapl_core(fapl, 1 << 16, false);
  H5Pset_file_image(fapl, bytes.data(), bytes.size());
  const Hid image(H5Fopen(side.disk_path("image.h5").c_str(), H5F_ACC_RDWR, fapl));
  if (out.call("H5Fopen of the image", image)) look_into(image, op, out);
}

bool plan_cache(Rng& rng, const Catalog& catalog, Op& op) {
  return pick_open_file(rng, catalog, op, false);
}

void run_cache(Side& side, const Op& op, Outcome& out) {
  const hid_t file = side.file(op.file);
  Rng rng = stream(op.data_seed, 16);
  H5AC_cache_config_t config{};
  config.version = H5AC__CURR_CACHE_CONFIG_VERSION;
  if (!out.call("H5Fget_mdc_config", H5Fget_mdc_config(file, &config))) return;
  out.number("largest metadata cache", static_cast<int64_t>(config.max_size));
  out.number("way of growing", config.incr_mode);
  out.number("way of shrinking", config.decr_mode);
  config.set_initial_size = rng.chance(50);
  config.min_size = 4096;
  config.initial_size = config.max_size = static_cast<size_t>(16384) << rng.below(7);
  config.evictions_enabled = true;
  if (rng.chance(20)) {  // which is only possible where sizes do not change by themselves
    config.incr_mode = H5C_incr__off;
    config.flash_incr_mode = H5C_flash_incr__off;
    config.decr_mode = H5C_decr__off;
    config.evictions_enabled = rng.chance(50);
  }
  out.call("H5Fset_mdc_config", H5Fset_mdc_config(file, &config));
}

constexpr OpRow kRows[] = {
    {"image", 12, plan_image, run_image, nullptr},
    {"metadata-cache", 8, plan_cache, run_cache, nullptr},
};

}  // namespace

std::span<const OpRow> file_ops() {
  return asked_for('f') ? std::span<const OpRow>(kRows) : std::span<const OpRow>();
}

}  // namespace tidelane::stress::lists
