// Access and creation lists of files.
#include "stress/lists/lists.h"

namespace tidelane::stress::lists {
namespace {

herr_t object_flushed(hid_t, void* heard) {
  ++static_cast<Heard*>(heard)->object_flushes;
  return 0;
}

void draw_sizes(hid_t fapl, Rng& rng) {
  if (rng.chance(25)) H5Pset_meta_block_size(fapl, static_cast<hsize_t>(512) << rng.below(8));
  if (rng.chance(25)) H5Pset_small_data_block_size(fapl, static_cast<hsize_t>(512) << rng.below(8));
  if (rng.chance(25)) H5Pset_cache(fapl, 0, 101, rng.chance(50) ? 0 : 65536, 1.0);
}

void draw_metadata_cache(hid_t fapl, Rng& rng) {
  if (rng.chance(30)) {
    H5AC_cache_config_t config{};
    config.version = H5AC__CURR_CACHE_CONFIG_VERSION;
    H5Pget_mdc_config(fapl, &config);
    config.set_initial_size = true;
    config.initial_size = config.min_size = 16384;
    config.max_size = static_cast<size_t>(65536) << rng.below(3);
    if (rng.chance(50)) config.incr_mode = H5C_incr__off;
    config.decr_mode = rng.chance(50) ? H5C_decr__age_out_with_threshold : H5C_decr__age_out;
    config.flash_incr_mode = rng.chance(50) ? H5C_flash_incr__off : H5C_flash_incr__add_space;
    H5Pset_mdc_config(fapl, &config);
  }
}

// Never with an image: natively the close of a file that had one soon fails (its cache keeps an entry pinned:
// H5C__flush_invalidate_ring), and HDF5 then crashes on its identifier.
void draw_image(hid_t fapl, Rng& rng) {
  if (!rng.chance(15)) return;
  H5AC_cache_image_config_t image{H5AC__CURR_CACHE_IMAGE_CONFIG_VERSION, false, false,
                                  H5AC__CACHE_IMAGE__ENTRY_AGEOUT__NONE};
  H5Pset_mdc_image_config(fapl, &image);
}

}  // namespace

void more_access(hid_t fapl, uint64_t seed, Heard& heard) {
  if (!asked_for('f') || seed == 0) return;
  Rng rng = stream(seed, 3);
  draw_sizes(fapl, rng);
  if (rng.chance(20)) H5Pset_gc_references(fapl, 1);
  draw_metadata_cache(fapl, rng);
  draw_image(fapl, rng);
  if (rng.chance(40)) H5Pset_object_flush_cb(fapl, object_flushed, &heard);
  // Never the core driver: what another file's link or virtual dataset has open with sec2 it opens a second time, with a copy of
  // its own, and a creation cuts it short before the lock refuses it; natively such files are soon damaged. See the images.
}

void more_creation(hid_t fcpl, uint64_t seed) {
  if (!asked_for('c') || seed == 0) return;
  Rng rng = stream(seed, 4);
  // Never other sizes of addresses and lengths: native HDF5 1.14 soon writes beyond its buffers.
  if (rng.chance(25))
    H5Pset_sym_k(fcpl, 2 + static_cast<unsigned>(rng.below(30)),
                 2 + static_cast<unsigned>(rng.below(8)));
  if (rng.chance(25)) H5Pset_istore_k(fcpl, 1 + static_cast<unsigned>(rng.below(64)));
  // Never shared messages: native HDF5 1.14 soon follows stale pointers (H5SM_delete). Nor yet external
  // files below: h5diff failed on natively made ones here, and why is not known.
  if (rng.chance(20))
    H5Pset_link_creation_order(fcpl, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
}

}  // namespace tidelane::stress::lists
