#include "tools/gathering.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/memory_limit.h"
#include "model/history_key.h"
#include "tools/locate.h"

namespace tidelane::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRankVariables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK",   "PMI_RANK",
                                          "MV2_COMM_WORLD_RANK",  "PALS_RANKID", "SLURM_PROCID"};

// The variable that says our rank; nullptr outside of a launcher.
const char* RankVariable() {
  for (const char* name : kRankVariables) {
    if (std::getenv(name) != nullptr) return name;
  }
  return nullptr;
}

// Whether our parent is the launcher itself: it has no rank. (A rank's own script has, and may start
// us more than once.) Another user's environment cannot be read: then it is the system's launcher.
bool StartedByLauncher(const char* variable) {
  std::string environment;
  if (!ReadWhole("/proc/" + std::to_string(getppid()) + "/environ", environment)) return true;
  const std::string wanted = std::string(variable) + "=";
  return !environment.starts_with(wanted) && environment.find('\0' + wanted) == std::string::npos;
}

// When a process began, in the kernel's own units: tells a process id from its next owner. Empty if
// there is no such process.
std::string BeginOf(const std::string& pid) {
  std::string stat;
  if (!ReadWhole("/proc/" + pid + "/stat", stat)) return {};
  const size_t name_end = stat.rfind(") ");
  if (name_end == std::string::npos) return {};
  const std::vector<std::string> fields = SplitAt(stat.substr(name_end + 2), ' ');
  return fields.size() > 19 ? fields[19] : std::string();
}

std::string TemporaryFolder() {
  const char* const folder = std::getenv("TMPDIR");
  return folder == nullptr || *folder == '\0' ? "/tmp" : folder;
}

std::string Prefix() { return "tidelane-" + std::to_string(getuid()) + "-"; }

bool IsNumber(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// One that we made: the folder for temporary files is everybody's.
bool IsFolderOfOurs(const std::string& path) {
  struct stat found;
  return lstat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == getuid() &&
         (found.st_mode & 0077) == 0;
}

void RemoveFoldersOfTheGone() {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(TemporaryFolder(), error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(Prefix())) continue;
    const std::vector<std::string> parts = SplitAt(name.substr(Prefix().size()), '-');
    if (parts.size() != 2 || !IsNumber(parts[0]) || !IsNumber(parts[1])) continue;
    if (BeginOf(parts[0]) == parts[1] || !IsFolderOfOurs(entry.path())) continue;
    std::error_code ignored;
    fs::remove_all(entry.path(), ignored);
  }
}

Status MakeFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0) return {};
  const int error = errno;
  if (error == EEXIST && IsFolderOfOurs(path)) return {};
  return Status::Failed(error, "make the folder " + path);
}

}  // namespace

Gathering::~Gathering() {
  std::error_code ignored;
  if (telling_) fs::remove_all(folder_, ignored);
}

Status Gathering::Begin() {
  RemoveFoldersOfTheGone();
  const char* const variable = RankVariable();
  if (variable != nullptr) rank_ = std::atoi(std::getenv(variable));
  std::string owner = std::to_string(getpid());
  if (variable != nullptr && StartedByLauncher(variable)) {
    ranks_ = RanksOnThisNode();
    other_nodes_ = model::RanksOfJob() > ranks_;
    if (ranks_ > 1) owner = std::to_string(getppid());
  }
  folder_ = TemporaryFolder() + "/" + Prefix() + owner + "-" + BeginOf(owner);
  place_ = folder_ + "/" + (rank_ < 0 ? "all" : std::to_string(rank_));
  if (Status status = MakeFolder(folder_); !status.ok()) return status;
  return MakeFolder(place_);
}

bool Gathering::End() {
  const int lock = open((folder_ + "/lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (lock < 0) return telling_ = true;
  while (flock(lock, LOCK_EX) != 0 && errno == EINTR) {
  }
  // The lock's file has a byte for each program that has ended.
  struct stat counted = {};
  const bool wrote = lseek(lock, 0, SEEK_END) >= 0 && write(lock, "x", 1) == 1;
  telling_ = !wrote || fstat(lock, &counted) != 0 || counted.st_size >= off_t{ranks_};
  close(lock);
  return telling_;
}

std::vector<Left> Gathering::Files(const std::string& extension) const {
  std::vector<std::pair<long, Left>> found;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder_, error)) {
    if (entry.path().extension() != extension) continue;
    const std::string rank = entry.path().parent_path().filename().string();
    found.push_back({std::atol(entry.path().stem().c_str()),
                     {entry.path().string(), rank == "all" ? -1 : std::atoi(rank.c_str())}});
  }
  std::ranges::sort(found, {},
                    [](const auto& one) { return std::pair(one.second.rank, one.first); });
  std::vector<Left> files;
  for (auto& [pid, left] : found) files.push_back(std::move(left));
  return files;
}

}  // namespace tidelane::tools
