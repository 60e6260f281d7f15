#include "tier/survival.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "publish/directory_entry.h"

namespace tidelane::tier {
namespace {

// Below this, users are the system's, whose sessions and shared memory logind leaves alone.
constexpr uid_t kFirstUser = 1000;
constexpr size_t kMost = size_t{64} << 10;

// A variable of a job, and who ends its processes.
constexpr std::pair<const char*, const char*> kSchedulers[] = {
    {"SLURM_JOB_ID", "Slurm ends all processes of a job step with it"},
    {"PBS_JOBID", "PBS ends all processes of a job with it"},
    {"LSB_JOBID", "LSF ends all processes of a job with it"},
    {"FLUX_JOB_ID", "Flux ends all processes of a job with it"},
    {"COBALT_JOBID", "Cobalt ends all processes of a job with it"},
};

std::string TextOf(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::string text(kMost, '\0');
  const ssize_t size = file.valid() ? read(file.get(), text.data(), text.size()) : 0;
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return text;
}

// The last line `name=value`; comments begin with #.
std::string_view ValueOf(std::string_view text, std::string_view name) {
  std::string_view value;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (line.starts_with(name) && line.substr(name.size()).starts_with('='))
      value = line.substr(name.size() + 1);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return value;
}

bool IsYes(std::string_view value) {
  return value == "yes" || value == "true" || value == "on" || value == "1";
}

}  // namespace

std::string WhatEndsIt(bool in_memory, const std::string& settings) {
  for (const auto& [variable, words] : kSchedulers) {
    const char* const job = std::getenv(variable);
    if (job != nullptr && *job != '\0') return words;
  }
  const char* const session = std::getenv("XDG_SESSION_ID");
  if (session == nullptr || *session == '\0' || geteuid() < kFirstUser) return {};
  const std::string text = TextOf(settings);
  if (IsYes(ValueOf(text, "KillUserProcesses")))
    return "logind ends all processes of a session with it (KillUserProcesses)";
  // Without the setting it does.
  const std::string_view removes = ValueOf(text, "RemoveIPC");
  if (in_memory && (removes.empty() || IsYes(removes)))
    return "logind removes a user's files in /dev/shm with the last session (RemoveIPC)";
  return {};
}

}  // namespace tidelane::tier
