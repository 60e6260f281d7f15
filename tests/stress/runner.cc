#include "stress/runner.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <mutex>

namespace tidelane::stress {
namespace {

constexpr size_t kHistory = 40;
std::mutex report_mutex;  // one report at a time; the first one ends the process

void hear(Side& side, Outcome& out) {
  out.number("flushes of objects told", side.heard().object_flushes);
  out.number("boundaries of appends told", side.heard().appends);
  out.number("external links told", side.heard().links);
}

}  // namespace

Runner::Runner(const RunOptions& options) : options_(options) {
  namespace fs = std::filesystem;
  catalog_.files[0].disk = "f0.0.h5";
  catalog_.files[1].disk = "f1.0.h5";
  if (options.alone()) {
    plugin_ = std::make_unique<Side>(options.dir, Side::Through::Environment);
    commits_ = std::make_unique<CommitLog>(options.commits, options.images);
    return;
  }
  fs::remove_all(options.dir + "/a");
  fs::remove_all(options.dir + "/b");
  fs::create_directories(options.dir + "/a");
  fs::create_directories(options.dir + "/b");
  plugin_ = std::make_unique<Side>(
      options.dir + "/a", options.native_both ? Side::Through::Native : Side::Through::Environment);
  native_ = std::make_unique<Side>(options.dir + "/b", Side::Through::Native);
}

bool Runner::dropped(uint64_t index) const {
  return std::any_of(options_.drop.begin(), options_.drop.end(),
                     [&](const auto& r) { return index >= r.first && index <= r.second; });
}

void Runner::remember(const Op& op, bool ok) {
  std::string line = std::to_string(op.index) + " " + op.text() + (ok ? "" : "   [failed]");
  if (options_.verbose) std::fprintf(stderr, "%s\n", line.c_str());
  history_.push_back(std::move(line));
  if (history_.size() > kHistory) history_.pop_front();
}

bool Runner::same(const Op& op, const Outcome& plugin, const Outcome& native) {
  const std::string difference = Outcome::difference(plugin, native);
  if (difference.empty()) return true;
  const std::lock_guard<std::mutex> lock(report_mutex);
  std::fprintf(stderr, "\nDIFFERENCE seed %llu operation %llu: %s\n  %s\n",
               static_cast<unsigned long long>(options_.seed),
               static_cast<unsigned long long>(op.index), op.text().c_str(), difference.c_str());
  std::fprintf(stderr, "last %zu operations, oldest first:\n", history_.size());
  for (const auto& line : history_) std::fprintf(stderr, "  %s\n", line.c_str());
  return false;
}

bool Runner::step(uint64_t index) {
  const Op op = draw_op(options_.seed, index, catalog_);
  Outcome plugin, native;
  // Neither side always goes first: a mistake must not hide behind the order.
  if (op.data_seed & 1) {
    op.row->run(*plugin_, op, plugin);
    op.row->run(*native_, op, native);
  } else {
    op.row->run(*native_, op, native);
    op.row->run(*plugin_, op, plugin);
  }
  plugin.number("refused closes of datasets", plugin_->refused_closes());
  native.number("refused closes of datasets", native_->refused_closes());
  hear(*plugin_, plugin);
  hear(*native_, native);
  if (options_.verbose && native_->refused_closes() > 0)
    std::fputs("(a close was refused) ", stderr);
  if (options_.fault_at >= 0 && !fault_done_ && index >= static_cast<uint64_t>(options_.fault_at)) {
    fault_done_ = plugin.corrupt();
  }
  remember(op, native.ok);
  if (!same(op, plugin, native)) return false;
  Tally& tally = tally_[op.row->name];
  ++(native.ok ? tally.succeeded : tally.failed);
  if (native.ok && op.row->commit != nullptr) op.row->commit(catalog_, op);
  if (!native.ok && op.row->abandon != nullptr) op.row->abandon(catalog_, op);
  return true;
}

// As natively, a failure is a result like any other: what it is compared with are the files.
bool Runner::step_alone(uint64_t index) {
  const Op op = draw_op(options_.seed, index, catalog_);
  if (!CommitLog::has_image_of(op)) return true;
  Outcome out;
  commits_->before(op, catalog_, *plugin_);
  op.row->run(*plugin_, op, out);
  commits_->after(op, catalog_, *plugin_, out.ok);
  remember(op, out.ok);
  if (out.ok && op.row->commit != nullptr) op.row->commit(catalog_, op);
  if (!out.ok && op.row->abandon != nullptr) op.row->abandon(catalog_, op);
  return true;
}

bool Runner::finish_alone() {
  Outcome out;
  plugin_->wait_all(out);
  commits_->before_end(*plugin_);
  plugin_->close_everything_but_files();
  for (int file = 0; file < 2; ++file) {
    const hid_t id = plugin_->release_file(file);
    if (id >= 0) out.call("last H5Fclose", H5Fclose(id));
  }
  const bool whole = !out.failed_any;
  if (whole) commits_->after_end(catalog_);
  plugin_.reset();
  return whole;
}

bool Runner::run() {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // failures are compared, not printed; per thread
  for (uint64_t i = 0; i < options_.ops; ++i) {
    if (!dropped(i) && !(options_.alone() ? step_alone(i) : step(i))) return false;
  }
  return options_.alone() ? finish_alone() : finish();
}

bool Runner::finish() {
  static constexpr OpRow kFinish{"finish", 0, nullptr, nullptr, nullptr};
  Op op;
  op.row = &kFinish;
  op.index = options_.ops;
  Outcome outcome[2];
  int which = 0;
  for (Side* side : {plugin_.get(), native_.get()}) {
    Outcome& out = outcome[which++];
    side->wait_all(out);
    for (int file = 0; file < 2; ++file) side->close_datasets(file);
    out.call("close of handles kept past their file", side->close_orphans());
    for (int file = 0; file < 2; ++file) {
      const hid_t id = side->release_file(file);
      if (id >= 0) out.call("last H5Fclose", H5Fclose(id));
    }
  }
  const bool equal = same(op, outcome[0], outcome[1]);
  plugin_.reset();
  native_.reset();
  return equal;
}

}  // namespace tidelane::stress
