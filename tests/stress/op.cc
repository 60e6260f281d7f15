#include "stress/op.h"

#include <array>

#include "stress/lists/lists.h"

namespace tidelane::stress {
namespace {

std::vector<const OpRow*> all_rows() {
  std::vector<const OpRow*> rows;
  for (const auto table : {dataset_ops(), data_ops(), attribute_ops(), link_ops(), file_ops(),
                           lists::dataset_ops(), lists::virtual_ops(), lists::link_ops(),
                           lists::copy_ops(), lists::file_ops(), lists::mount_ops()}) {
    for (const OpRow& row : table) rows.push_back(&row);
  }
  return rows;
}

}  // namespace

std::string Op::text() const {
  std::string out = row->name;
  out += " f" + std::to_string(file);
  if (!path.empty()) out += " " + path;
  if (!attribute.empty()) out += " @" + attribute;
  if (!path2.empty()) out += " -> " + path2;
  if (async) out += " [async]";
  if (keep_handles) out += " [handles kept]";
  if (variant != 0) out += " variant " + std::to_string(variant);
  return out + (note.empty() ? "" : " (" + note + ")");
}

Op draw_op(uint64_t seed, uint64_t index, const Catalog& catalog) {
  static const std::vector<const OpRow*> rows = all_rows();
  static const uint64_t total = [] {
    uint64_t sum = 0;
    for (const OpRow* row : rows) sum += row->weight;
    return sum;
  }();
  Rng rng(seed * 0x100000001b3ULL + index * 0x9e3779b1ULL + 1);
  for (;;) {
    uint64_t at = rng.below(total);
    size_t r = 0;
    while (at >= rows[r]->weight) at -= rows[r++]->weight;
    Op op;
    op.row = rows[r];
    op.index = index;
    op.data_seed = rng.next();
    if (op.row->plan(rng, catalog, op)) return op;
  }
}

bool pick_open_file(Rng& rng, const Catalog& catalog, Op& op, bool for_writing) {
  op.file = static_cast<int>(rng.below(2));
  const auto usable = [&](const FileState& f) { return f.open && (f.writable || !for_writing); };
  if (usable(catalog.files[op.file])) return true;
  op.file = 1 - op.file;
  return usable(catalog.files[op.file]);
}

bool pick_dataset(Rng& rng, const Catalog& catalog, Op& op, bool for_writing) {
  if (!pick_open_file(rng, catalog, op, for_writing)) return false;
  const FileState& file = catalog.files[op.file];
  if (file.datasets.empty()) return false;
  op.dataset = rng.pick(file.datasets);
  op.path = op.dataset.path;
  return true;
}

std::string fresh_path(Rng& rng, const FileState& file, const char* stem) {
  std::string parent;
  if (!file.groups.empty() && rng.chance(40)) parent = rng.pick(file.groups);
  for (int i = 0; i < 8; ++i) {
    std::string path = parent + "/" + stem + std::to_string(rng.below(12));
    if (!file.taken(path)) return path;
  }
  return parent + "/" + stem + "_taken";
}

}  // namespace tidelane::stress
