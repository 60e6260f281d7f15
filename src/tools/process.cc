#include "tools/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/trace.h"

namespace tidelane::tools {
namespace {

constexpr int kToPassOn[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH};

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

void Change(const std::vector<std::string>& environment) {
  for (const std::string& entry : environment) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos) {
      unsetenv(entry.c_str());
    } else {
      setenv(entry.substr(0, equals).c_str(), entry.c_str() + equals + 1, 1);
    }
  }
}

// In the child, which must not come back. `failed` tells the parent why.
[[noreturn]] void Become(char* const* words, int failed) {
  execvp(words[0], words);
  const int error = errno;
  [[maybe_unused]] const ssize_t told = write(failed, &error, sizeof error);
  _exit(127);
}

int WhyNotStarted(int pipe) {
  int error = 0;
  const ssize_t size = read(pipe, &error, sizeof error);
  close(pipe);
  return size == sizeof error ? error : 0;
}

void ReadInto(struct pollfd& source, std::string& text) {
  char piece[16384];
  const ssize_t size = read(source.fd, piece, sizeof piece);
  if (size > 0) {
    text.append(piece, static_cast<size_t>(size));
  } else if (size == 0 || errno != EINTR) {
    close(source.fd);
    source.fd = -1;
  }
}

// Both ends, in turn, until both are closed or the time is over.
void ReadBoth(int output, int errors, uint64_t end_ns, const std::function<void()>& meanwhile,
              Ended& ended) {
  constexpr uint64_t kTenthMs = 100;
  struct pollfd sources[2] = {{output, POLLIN, 0}, {errors, POLLIN, 0}};
  std::string* const texts[2] = {&ended.output, &ended.errors};
  while (sources[0].fd >= 0 || sources[1].fd >= 0) {
    const uint64_t now = NowNs();
    ended.late = now >= end_ns;
    if (ended.late) break;
    meanwhile();
    poll(sources, 2, static_cast<int>(std::min((end_ns - now) / 1'000'000 + 1, kTenthMs)));
    for (int i = 0; i < 2; ++i) {
      if (sources[i].fd >= 0 && sources[i].revents != 0) ReadInto(sources[i], *texts[i]);
    }
  }
  for (const struct pollfd& source : sources) {
    if (source.fd >= 0) close(source.fd);
  }
}

// False if the child has not ended by `end_ns`. SIGCHLD is blocked.
bool WaitUntil(pid_t child, uint64_t end_ns, int& status) {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGCHLD);
  while (waitpid(child, &status, WNOHANG) == 0) {
    const uint64_t now = NowNs();
    if (now >= end_ns) return false;
    struct timespec left;
    left.tv_sec = static_cast<time_t>((end_ns - now) / 1'000'000'000);
    left.tv_nsec = static_cast<long>((end_ns - now) % 1'000'000'000);
    sigtimedwait(&ends, nullptr, &left);
  }
  return true;
}

// A signal of the terminal went to the program too: only what was sent to us alone is passed on.
bool ToBePassedOn(const siginfo_t& signal) {
  const bool from_terminal = signal.si_signo == SIGINT || signal.si_signo == SIGQUIT;
  return signal.si_signo != SIGCHLD &&
         !((from_terminal || signal.si_signo == SIGWINCH) && signal.si_code == SI_KERNEL);
}

int WaitPassingOn(pid_t child, const sigset_t& watched) {
  int status = 0;
  for (;;) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) return status;
    siginfo_t signal;
    if (sigwaitinfo(&watched, &signal) > 0 && ToBePassedOn(signal)) kill(child, signal.si_signo);
  }
}

}  // namespace

std::string Ended::HowInWords() const {
  if (!started) return std::string("could not be started: ") + std::strerror(error);
  if (late) return "did not end in time";
  if (WIFSIGNALED(status)) {
    return "was ended by signal " + std::to_string(WTERMSIG(status)) + " (" +
           strsignal(WTERMSIG(status)) + ")";
  }
  return "ended with status " + std::to_string(WEXITSTATUS(status));
}

Ended RunAndRead(const std::vector<std::string>& command,
                 const std::vector<std::string>& environment, double seconds,
                 const std::function<void()>& meanwhile) {
  Ended ended;
  int failed[2];
  int output[2];
  int errors[2];
  if (pipe2(failed, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0 ||
      pipe2(errors, O_CLOEXEC) != 0) {
    ended.error = errno;
    return ended;
  }
  std::vector<char*> words = Pointers(command);
  sigset_t ends;
  sigset_t before;
  sigemptyset(&ends);
  sigaddset(&ends, SIGCHLD);
  sigprocmask(SIG_BLOCK, &ends, &before);
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);  // what it starts ends with it
    sigprocmask(SIG_SETMASK, &before, nullptr);
    Change(environment);
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(output[1], STDOUT_FILENO);
    dup2(errors[1], STDERR_FILENO);
    Become(words.data(), failed[1]);
  }
  close(failed[1]);
  close(output[1]);
  close(errors[1]);
  ended.error = child < 0 ? errno : WhyNotStarted(failed[0]);
  ended.started = ended.error == 0;
  const uint64_t end_ns = NowNs() + static_cast<uint64_t>(seconds * 1e9);
  ReadBoth(output[0], errors[0], end_ns, meanwhile, ended);
  if (child > 0 && (ended.late || !WaitUntil(child, end_ns, ended.status))) {
    ended.late = true;
    kill(-child, SIGKILL);
    kill(child, SIGKILL);  // it may not have come to its own group
    waitpid(child, &ended.status, 0);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return ended;
}

Ended RunInFront(const std::vector<std::string>& command, int& pid) {
  Ended ended;
  int failed[2];
  if (pipe2(failed, O_CLOEXEC) != 0) {
    ended.error = errno;
    return ended;
  }
  std::vector<char*> words = Pointers(command);
  sigset_t watched;
  sigset_t before;
  sigemptyset(&watched);
  for (const int signal : kToPassOn) sigaddset(&watched, signal);
  sigaddset(&watched, SIGCHLD);
  sigprocmask(SIG_BLOCK, &watched, &before);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    // Who kills us by force means the program too.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    Become(words.data(), failed[1]);
  }
  close(failed[1]);
  pid = child;
  ended.error = child < 0 ? errno : WhyNotStarted(failed[0]);
  ended.started = ended.error == 0;
  if (child > 0) ended.status = WaitPassingOn(child, watched);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return ended;
}

void EndAs(int status) {
  if (WIFSIGNALED(status)) {
    const int by = WTERMSIG(status);
    const struct rlimit none = {0, 0};  // the program's core is enough
    setrlimit(RLIMIT_CORE, &none);
    signal(by, SIG_DFL);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, by);
    sigprocmask(SIG_UNBLOCK, &only, nullptr);
    raise(by);
    std::exit(128 + by);
  }
  std::exit(WEXITSTATUS(status));
}

}  // namespace tidelane::tools
