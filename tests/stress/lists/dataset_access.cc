// Access lists of datasets: another one for each open, so that what an open dataset keeps of its first list shows.
#include <functional>
#include <string_view>

#include "stress/lists/lists.h"

namespace tidelane::stress::lists {
namespace {

herr_t appended(hid_t, hsize_t*, void*) { return 0; }

void draw_cache(hid_t dapl, Rng& rng) {
  static constexpr size_t caches[] = {0, 4096, 65536, 1 << 20, 16 << 20};
  static constexpr double preemptions[] = {0.0, 0.5, 1.0};
  if (!rng.chance(50)) return;
  H5Pset_chunk_cache(dapl, rng.chance(50) ? 1 : 521, caches[rng.below(5)],
                     preemptions[rng.below(3)]);
}

// A boundary of another rank than the dataset's, or in a dimension that cannot grow, is refused: by the open.
void draw_boundary(hid_t dapl, Rng& rng) {
  const auto rank = static_cast<unsigned>(rng.between(1, 2));
  const Dims boundary{rng.between(1, 50), rng.below(9), 0};
  H5Pset_append_flush(dapl, rank, boundary.data(), appended, nullptr);
}

// None, elsewhere, or the side's own folder, which is another for each side.
int kind_of_prefix(ssize_t (*get)(hid_t, char*, size_t), hid_t dapl) {
  char prefix[1024] = "";
  if (get(dapl, prefix, sizeof prefix) < 0) return -1;
  return prefix[0] == '\0' ? 0 : std::string_view(prefix) == "elsewhere" ? 1 : 2;
}

}  // namespace

Hid dataset_access(const std::string& path, uint64_t nth) {
  if (!asked_for('a')) return Hid(H5P_DEFAULT);
  Rng rng = stream(std::hash<std::string>{}(path) + nth * 0x9e3779b97f4a7c15ULL, 2);
  Hid dapl(H5Pcreate(H5P_DATASET_ACCESS));
  draw_cache(dapl, rng);
  // A dataset that is open refuses an open with another prefix.
  H5Pset_efile_prefix(dapl, rng.chance(95) ? "${ORIGIN}" : "elsewhere");
  if (rng.chance(20)) H5Pset_virtual_prefix(dapl, rng.chance(80) ? "${ORIGIN}" : "elsewhere");
  if (rng.chance(20)) H5Pset_virtual_view(dapl, H5D_VDS_FIRST_MISSING);
  if (rng.chance(20)) H5Pset_virtual_printf_gap(dapl, rng.below(4));
  if (rng.chance(8)) draw_boundary(dapl, rng);
  return dapl;
}

void describe_access(hid_t dset, Outcome& out) {
  if (!asked_for('a')) return;
  const Hid dapl(H5Dget_access_plist(dset));
  if (!out.call("H5Dget_access_plist", dapl)) return;
  size_t slots = 0, bytes = 0;
  double preemption = 0;
  H5Pget_chunk_cache(dapl, &slots, &bytes, &preemption);
  out.number("slots of the chunk cache", static_cast<int64_t>(slots));
  out.number("bytes of the chunk cache", static_cast<int64_t>(bytes));
  out.number("preemption", static_cast<int64_t>(preemption * 100));
  Dims boundary{};
  H5D_append_cb_t callback = nullptr;
  void* data = nullptr;
  if (out.call("H5Pget_append_flush",
               H5Pget_append_flush(dapl, 3, boundary.data(), &callback, &data))) {
    for (const hsize_t b : boundary) out.number("append boundary", static_cast<int64_t>(b));
    out.number("append callback", callback != nullptr);
  }
  out.number("prefix of external files", kind_of_prefix(H5Pget_efile_prefix, dapl));
  out.number("prefix of virtual sources", kind_of_prefix(H5Pget_virtual_prefix, dapl));
  H5D_vds_view_t view{};
  hsize_t gap = 0;
  if (out.call("H5Pget_virtual_view", H5Pget_virtual_view(dapl, &view))) {
    out.number("virtual view", view);
  }
  if (out.call("H5Pget_virtual_printf_gap", H5Pget_virtual_printf_gap(dapl, &gap))) {
    out.number("gap of virtual blocks", static_cast<int64_t>(gap));
  }
}

}  // namespace tidelane::stress::lists
