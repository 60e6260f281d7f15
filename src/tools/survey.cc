#include "tools/survey.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <vector>

#include "log/format.h"
#include "publish/directory_entry.h"
#include "tools/terminal.h"

namespace tidelane::tools {
namespace {

namespace fs = std::filesystem;

std::string FolderOf(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

// Of the file's log: marked with its id, or a neighbour of that one in the chain.
bool IsItsLog(const log::FoundSegment& segment, const std::string& path, const Superblock& marked) {
  if (!marked.marked()) return false;
  // One that cannot be read may be: its file has said so.
  std::string whose;
  if (segment.id == 0 && marked.mark() != kNeverCommitted)
    return log::IsSegmentName(segment.name, whose);
  const std::vector<log::FoundSegment> beside = log::SegmentsBeside(path);
  const auto is_neighbour = [&](const log::FoundSegment& other) {
    return other.id != 0 && marked.MarkedWith(other.id) &&
           (segment.before == other.id || segment.id == other.before);
  };
  return marked.MarkedWith(segment.id) ||
         (segment.id != 0 && std::ranges::any_of(beside, is_neighbour));
}

}  // namespace

void Survey::Complain(const std::string& message) {
  Tell(message);
  failed_ = true;
}

void Survey::Complain(const std::string& path, int error) {
  Complain(path + ": " + std::strerror(error));
}

// Whoever names a file's log means the file.
void Survey::Log(const log::FoundSegment& segment, bool named) {
  std::string name;
  log::IsLogName(segment.name, name);
  const std::string path = (fs::path(segment.path).parent_path() / name).string();
  log::FileByName file;
  const Status status = file.Open(path, log::Purpose::kLook);
  if (status.code() == ENOENT) return Stray(segment, "");
  if (!status.ok()) return Complain(path, status.code());
  const bool stray =
      !file.in_use() && !(file.marked() && IsItsLog(segment, path, file.superblock()));
  if (named) File(file, path, true);  // otherwise it has been told of
  if (stray) Stray(segment, path);
}

void Survey::Folder(const std::string& path, bool recursive) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error))
    entries.push_back(at->path());
  if (error) Complain(path + ": " + error.message());
  std::ranges::sort(entries);
  std::vector<std::string> below;
  for (const fs::path& entry : entries) {
    std::error_code ignored;
    const fs::file_status status = fs::symlink_status(entry, ignored);
    std::string whose;
    if (IsHiddenName(entry.filename().string())) {
      Hidden(entry.string(), false);
    } else if (fs::is_directory(status)) {
      below.push_back(entry.string());
    } else if (fs::is_regular_file(status) && !log::IsLogName(entry.filename().string(), whose)) {
      Look(entry.string(), false);
    }
  }
  for (const log::FoundSegment& segment : log::LogsIn(path)) Log(segment, false);
  if (!recursive) return;
  for (const std::string& folder : below) Folder(folder, true);
}

void Survey::Look(const std::string& path, bool named) {
  log::FileByName file;
  const Status status = file.Open(path, log::Purpose::kLook);
  if (status.ok()) return File(file, path, named);
  // Of what others keep for themselves nobody has asked.
  if (named || status.code() != EACCES) Complain(path, status.code());
}

void Survey::Operand(const std::string& path, bool recursive) {
  std::error_code error;
  if (fs::is_directory(path, error)) return Folder(path, recursive);
  const std::string name = fs::path(path).filename().string();
  if (IsHiddenName(name)) return Hidden(path, true);
  std::string whose;
  log::FoundSegment segment;
  if (log::IsLogName(name, whose)) {
    const int failed = log::LookAtSegment(path, segment);
    return failed == 0 ? Log(segment, true) : Complain(path, failed);
  }
  Look(path, true);
  for (const log::FoundSegment& beside : log::SegmentsBeside(path)) Log(beside, false);
}

int Survey::Run(const Arguments& arguments) {
  std::vector<std::string> operands = arguments.operands;
  if (operands.empty()) operands.emplace_back(".");
  for (const std::string& operand : operands) {
    std::error_code error;
    if (!fs::exists(operand, error)) return Fail(kUsage, operand + ": no such file or folder");
  }
  for (const std::string& operand : operands) Operand(operand, arguments.Has("recursive"));
  return failed_ ? kFailed : kDone;
}

std::string OwnerOf(const std::string& segment) {
  log::FoundSegment found;
  std::string path;
  log::FileByName file;
  if (log::LookAtSegment(segment, found) != 0 || !log::IsSegmentName(segment, path) ||
      !file.Open(path, log::Purpose::kLook).ok() || !IsItsLog(found, path, file.superblock()))
    return {};
  return path;
}

std::string LogElsewhere(const std::string& path, const Superblock& marked) {
  for (const log::FoundSegment& segment : log::LogsIn(FolderOf(path))) {
    if (segment.id != 0 && marked.MarkedWith(segment.id) && OwnerOf(segment.path).empty())
      return segment.path;
  }
  return {};
}

std::string AgeInWords(int64_t seconds) {
  struct Unit {
    int64_t seconds;
    const char* name;
  };
  static constexpr Unit kUnits[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
  seconds = std::max<int64_t>(seconds, 0);
  const auto* const unit =
      std::ranges::find_if(kUnits, [&](const Unit& known) { return seconds >= 2 * known.seconds; });
  const Unit& fits = unit == std::end(kUnits) ? kUnits[std::size(kUnits) - 1] : *unit;
  return std::to_string(seconds / fits.seconds) + " " + fits.name;
}

}  // namespace tidelane::tools
