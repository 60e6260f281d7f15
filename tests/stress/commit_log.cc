#include "stress/commit_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "stress/side.h"

namespace tidelane::stress {
namespace {

namespace fs = std::filesystem;

bool is(const Op& op, std::string_view name) { return op.row->name == name; }

// Calls that commit, or may: flushes, closes of anything that may be the last to have a file open, and who asks where bytes lie.
bool may_commit(const Op& op) {
  static constexpr std::array<std::string_view, 11> kNames{
      "flush", "close", "reopen", "close-orphans", "second-open", "open",
      "copy",  "chunk", "delete", "rename",        "recreate"};
  return std::ranges::find(kNames, op.row->name) != kNames.end();
}

// From then on a file is opened and closed by HDF5 itself, within any call: each of them may commit it as it was before.
bool leads_elsewhere(const Op& op) {
  return (is(op, "link") && !op.attribute.empty()) || is(op, "create-virtual");
}

bool opens(const Op& op) { return is(op, "open") || is(op, "reopen"); }

// Whether something in the other file has this one open, too: then its close is not the last one.
bool is_held(const Op& op, const Catalog& catalog, const Side& side) {
  const int other = 1 - op.file;
  const auto& sources = catalog.files[other].datasets;
  return side.profile(other).external_cache || !catalog.files[other].printfs.empty() ||
         std::ranges::any_of(sources, [&](const Dataset& one) {
           return one.layout == Layout::Virtual && one.source_file == op.file;
         });
}

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

}  // namespace

CommitLog::CommitLog(const std::string& path, std::string images)
    : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)),
      images_(std::move(images)) {
  if (fd_ < 0) std::abort();
}

CommitLog::~CommitLog() { ::close(fd_); }

void CommitLog::say(const std::string& line) const {
  const std::string whole = "[" + line + "]\n";
  if (::write(fd_, whole.data(), whole.size()) != static_cast<ssize_t>(whole.size())) std::abort();
}

bool CommitLog::has_image_of(const Op& op) { return !is(op, "write-close"); }

void CommitLog::begin(Side& side) {
  ++state_;
  if (!images_.empty()) {
    side.flush_files();
    const fs::path folder = fs::path(images_) / std::to_string(state_);
    fs::create_directories(folder);
    for (const auto& entry : fs::directory_iterator(side.dir())) {
      if (entry.is_symlink() || !entry.is_regular_file()) continue;
      fs::copy_file(entry.path(), folder / entry.path().filename());
    }
  }
  say("\"begin\", " + std::to_string(state_));
}

void CommitLog::done(uint64_t state, const std::string& name, bool closed) const {
  say(std::string(closed ? "\"closed\", " : "\"done\", ") + std::to_string(state) + ", [" +
      quoted(name) + "]");
}

void CommitLog::before(const Op& op, const Catalog& catalog, Side& side) {
  if (!linked_ && !may_commit(op)) return;
  begin(side);
  // A flush of a file does not reach what HDF5 keeps for datasets that a virtual one in another file has written (its sieve), natively neither.
  if (linked_ && is(op, "flush")) side.flush_datasets();
  if (!opens(op)) return;
  const bool kept = linked_ || side.has_orphans() || is_held(op, catalog, side);
  if (creates(op)) {
    if (kept) say("\"replaced\", " + quoted(op.path));
    say("\"creating\", " + quoted(op.path));
  } else if (op.path != op.path2) {
    say((kept ? "\"moved\", " : "\"renamed\", ") + quoted(op.path) + ", " + quoted(op.path2));
  }
}

// What was asked for before is of the file that had the name until now.
void CommitLog::opened(const Op& op) {
  if (creates(op)) {
    say("\"created\", " + quoted(op.path));
    std::erase_if(asked_, [&](const Asked& one) { return one.name == op.path; });
  } else {
    for (Asked& one : asked_) {
      if (one.name == op.path) one.name = op.path2;
    }
  }
}

void CommitLog::after(const Op& op, const Catalog& catalog, Side& side, bool ok) {
  if (is(op, "wait") && op.variant >= 2 && ok) {
    for (const Asked& one : asked_) done(one.state, one.name, one.closed);
    asked_.clear();
  }
  const FileState& file = catalog.files[op.file];
  const bool flushed = is(op, "flush") && file.writable;
  // A dataset that a link in the other file leads to keeps this one open.
  const bool closed =
      is(op, "close") && !op.keep_handles && !linked_ && !is_held(op, catalog, side);
  if (!ok) return;
  linked_ = linked_ || leads_elsewhere(op);
  if (opens(op)) opened(op);
  if (!flushed && !closed) return;
  if (op.async) {
    asked_.push_back({state_, file.disk, closed});
  } else {
    done(state_, file.disk, closed);
  }
}

void CommitLog::after_end(const Catalog& catalog) {
  for (const FileState& file : catalog.files) {
    if (file.exists) done(state_, file.disk, true);
  }
}

}  // namespace tidelane::stress
