#include "ranks/bell.h"

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <thread>
#include <utility>

#include "base/fresh_file.h"
#include "base/thread_name.h"
#include "extent/test_hooks.h"

namespace tidelane {
namespace {

constexpr timeval kIdle{.tv_sec = 2, .tv_usec = 0};

// A name that is no file's: it is gone with the process.
socklen_t NameOf(uint64_t number, sockaddr_un& name) {
  name = {};
  name.sun_family = AF_UNIX;
  const int length =
      std::snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "tidelane-%016" PRIx64, number);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
}

// Whether the descriptor is the bell of that number.
bool IsNamed(int socket, uint64_t number) {
  sockaddr_un found;
  sockaddr_un wanted;
  socklen_t size = sizeof found;
  const socklen_t length = NameOf(number, wanted);
  return socket >= 0 && getsockname(socket, reinterpret_cast<sockaddr*>(&found), &size) == 0 &&
         size == length && std::memcmp(&found, &wanted, length) == 0;
}

// -1: the system refuses one.
int NewSocket() { return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0); }

}  // namespace

Bell& Bell::Get() {
  static Bell* const bell = new Bell;
  return *bell;
}

bool Bell::Make() {
  const int made = NewSocket();
  if (made < 0) return false;
  sockaddr_un name;
  const socklen_t size = NameOf(number_, name);
  if (bind(made, reinterpret_cast<const sockaddr*>(&name), size) != 0 ||
      setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &kIdle, sizeof kIdle) != 0) {
    close(made);
    return false;
  }
  socket_ = made;
  return true;
}

uint64_t Bell::number() {
  MutexLock lock(mutex_);
  if (number_ == 0) number_ = RandomBits() | 1;
  return number_;
}

void Bell::Ring(uint64_t number) {
  if (number == 0 || MutationEnabled("ranks_bell")) return;
  const int from = NewSocket();
  if (from < 0) return;
  sockaddr_un name;
  const socklen_t size = NameOf(number, name);
  const char ring = 0;
  // Its rings fill a queue at most: then it is about to hear one.
  static_cast<void>(sendto(from, &ring, sizeof ring, MSG_DONTWAIT | MSG_NOSIGNAL,
                           reinterpret_cast<const sockaddr*>(&name), size));
  close(from);
}

void Bell::Add(std::weak_ptr<void> whose, std::function<void()> answer) {
  MutexLock lock(mutex_);
  std::erase_if(answers_, [](const Answer& one) { return one.whose.expired(); });
  answers_.push_back({std::move(whose), std::move(answer)});
}

void Bell::Hold() {
  MutexLock lock(mutex_);
  ++held_;
  recently_held_ = true;
  if (!listening_) StartListening();
}

void Bell::LetGo() {
  MutexLock lock(mutex_);
  --held_;
}

void Bell::StartListening() {
  if (number_ == 0) return;  // nobody has been told of it
  // Even if there is no socket, or no thread: both would be refused again, at every write.
  listening_ = true;
  if (!Make()) return;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the program's signals stay with the program
  try {
    std::thread([this, socket = socket_, number = number_] {
      NameThread();
      ListenOn(socket, number);
    }).detach();
  } catch (const std::exception&) {  // then bytes linger
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Bell::ListenOn(int socket, uint64_t number) {
  // A program may close descriptors that are not its own, and get the number for something of its own.
  while (IsNamed(socket, number)) {
    char rings[64];
    if (recv(socket, rings, sizeof rings, 0) >= 0) {
      while (recv(socket, rings, sizeof rings, MSG_DONTWAIT) >= 0) {
      }
      try {
        AnswerAll();
      } catch (const std::bad_alloc&) {  // then bytes linger
      }
    } else if (errno == EAGAIN && MayEnd()) {
      return;
    }
  }
  MutexLock lock(mutex_);
  EndListening();
}

// Under the lock, so that who holds something from now on finds nobody listening, and starts another one.
bool Bell::MayEnd() {
  MutexLock lock(mutex_);
  if (held_ != 0 || std::exchange(recently_held_, false)) return false;
  EndListening();
  return true;
}

void Bell::EndListening() {
  if (IsNamed(socket_, number_)) close(socket_);
  socket_ = -1;
  listening_ = false;
}

// Without the lock: who answers takes a file's, which comes first.
void Bell::AnswerAll() {
  std::vector<Answer> answers;
  {
    MutexLock lock(mutex_);
    answers = answers_;
  }
  for (const Answer& one : answers) {
    if (const std::shared_ptr<void> there = one.whose.lock(); there != nullptr) one.answer();
  }
}

void Bell::UnlockAfterFork(bool child) {
  if (child) {
    EndListening();
    number_ = 0;
    held_ = 0;
    answers_.clear();
  }
  mutex_.unlock();
}

}  // namespace tidelane
