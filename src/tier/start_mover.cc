// A process that has nothing of this one, and is no child of it: whoever waits for all of its children must not meet it.
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <string>

#include "tier/mover.h"

namespace tidelane::tier {
namespace {

constexpr char kProgram[] = "tidelane-mover";
constexpr size_t kStack = size_t{64} << 10;

std::string Program() {
  Dl_info found{};
  if (dladdr(reinterpret_cast<const void*>(&StartMover), &found) == 0 || found.dli_fname == nullptr)
    return {};
  std::array<char, PATH_MAX> whole{};
  const std::string path = realpath(found.dli_fname, whole.data()) != nullptr ? whole.data() : "";
  const std::string program = path.substr(0, path.rfind('/') + 1) + kProgram;
  return access(program.c_str(), X_OK) == 0 ? program : std::string();
}

struct Start {
  const char* program;
  char* const* arguments;
  char* const* environment;
  std::byte* stack;  // of the second process
};

// Both share this process's memory, and stop its thread until they have gone: what they call must not need more than that.
int Exec(void* argument) {
  const auto& start = *static_cast<const Start*>(argument);
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = open("/dev/null", O_RDWR);
  for (const int standard : {0, 1, 2}) dup2(nothing, standard);
  syscall(SYS_close_range, 3u, ~0u, 0u);
  if (chdir("/") != 0) _exit(1);
  execve(start.program, start.arguments, start.environment);
  _exit(1);
}

int Detach(void* argument) {
  auto& start = *static_cast<Start*>(argument);
  const int child = clone(Exec, start.stack + kStack, CLONE_VM | CLONE_VFORK | SIGCHLD, &start);
  _exit(child < 0 ? 1 : 0);
}

}  // namespace

bool StartMover(const Place& place, const MoverStart& wanted) {
  const std::string program = Program();
  if (program.empty()) return false;
  void* const stacks = mmap(nullptr, 2 * kStack, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stacks == MAP_FAILED) return false;
  std::string name = kProgram;
  std::string path = place.path;
  std::string search = "PATH=/usr/local/bin:/usr/bin:/bin";
  std::string idle = std::to_string(MoverOptions().idle.count());
  std::string rate = std::to_string(wanted.rate);
  std::string niceness = std::to_string(wanted.niceness);
  std::string streams = std::to_string(wanted.streams);
  std::array<char*, 7> arguments{name.data(),     path.data(),    idle.data(), rate.data(),
                                 niceness.data(), streams.data(), nullptr};
  std::array<char*, 2> environment{search.data(), nullptr};
  auto* const stack = static_cast<std::byte*>(stacks);
  Start start{.program = program.c_str(),
              .arguments = arguments.data(),
              .environment = environment.data(),
              .stack = stack + kStack};
  // No signal when it ends: whoever waits for children does not find it.
  const int child = clone(Detach, stack + kStack, CLONE_VM | CLONE_VFORK, &start);
  int status = 1;
  while (child > 0 && waitpid(child, &status, __WCLONE) < 0 && errno == EINTR) {
  }
  munmap(stacks, 2 * kStack);
  return child > 0 && status == 0;
}

}  // namespace tidelane::tier
