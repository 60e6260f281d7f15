// Processes: see owner.h.
#include "gpu/real/owner.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

extern char** environ;

namespace tidelane::gpu_real {
namespace {

constexpr const char* kSelf = "/proc/self/exe";
constexpr size_t kGranule = size_t{2} << 20;  // so that the memory shares its pages with no other

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> all;
  for (std::string& string : strings) all.push_back(string.data());
  all.push_back(nullptr);
  return all;
}

bool read_all(int from, void* to, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t got = read(from, static_cast<char*>(to) + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

// The owner's answer: an error of the driver, and if that is 0 the handle.
struct Answer {
  int error = -1;
  IpcHandle handle{};
};

}  // namespace

pid_t start(const std::vector<std::string>& arguments, const std::vector<std::string>& changes,
            int input, int output) {
  std::vector<std::string> environment;
  const auto name = [](const std::string& variable) {
    return variable.substr(0, variable.find('='));
  };
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const bool changed = std::ranges::any_of(
        changes, [&](const std::string& change) { return name(change) == name(*variable); });
    if (!changed) environment.emplace_back(*variable);
  }
  for (const std::string& change : changes) {
    if (change.find('=') != std::string::npos) environment.push_back(change);
  }
  std::vector<std::string> all = {"gpu_real"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const std::vector<char*> argv = pointers(all);
  const std::vector<char*> envp = pointers(environment);
  const pid_t process = fork();
  if (process != 0) {
    if (process < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
    return process;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody would await it
  if (input >= 0) dup2(input, STDIN_FILENO);
  if (output >= 0) dup2(output, STDOUT_FILENO);
  execve(kSelf, argv.data(), envp.data());
  _exit(126);
}

std::string await(pid_t process, int& status) {
  int how = 0;
  while (waitpid(process, &how, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(how)) {
    status = 128 + WTERMSIG(how);
    return std::string("ended by a signal: ") + strsignal(WTERMSIG(how));
  }
  status = WEXITSTATUS(how);
  return status == 0 ? "" : "ended with status " + std::to_string(status);
}

Owner::Owner(size_t bytes) {
  int to[2];
  int from[2];
  if (pipe2(to, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  if (pipe2(from, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  process_ = start({"own", std::to_string(bytes)}, {"HDF5_VOL_CONNECTOR"}, to[0], from[1]);
  ::close(to[0]);
  ::close(from[1]);
  to_process_ = to[1];
  Answer answer;
  const bool answered = read_all(from[0], &answer, sizeof answer);
  ::close(from[0]);
  handle_ = answer.handle;
  if (answered && answer.error == 0) return;
  ::close(to_process_);
  int status = 0;
  const std::string how = await(process_, status);
  if (!answered) throw Unavailable("the memory's owner gave no answer, and " + how);
  throw Unavailable(describe(answer.error, "cuIpcGetMemHandle"));
}

Owner::~Owner() {
  ::close(to_process_);
  int status = 0;
  await(process_, status);
}

int own(size_t bytes) {
  Answer answer;
  std::string why;
  DevicePointer memory = 0;
  if (open(why)) {
    answer.error = cuda().MemAlloc(&memory, (bytes + kGranule - 1) / kGranule * kGranule);
    if (answer.error == 0) {
      answer.error = cuda().IpcGetMemHandle == nullptr
                         ? 801  // not supported
                         : cuda().IpcGetMemHandle(&answer.handle, memory);
    }
  }
  if (write(STDOUT_FILENO, &answer, sizeof answer) != sizeof answer) return 1;
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return 0;
}

}  // namespace tidelane::gpu_real
