#include "engine/bell.h"

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
#include <exception>
#include <new>
#include <thread>
#include <utility>

#include "base/fresh_file.h"
#include "extent/broken.h"

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

// -1: the system refuses one.
int NewSocket() { return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0); }

}  // namespace

Bell& Bell::Get() {
  static Bell* const bell = new Bell;
  return *bell;
}

void Bell::Make() {
  made_ = true;
  const int made = NewSocket();
  if (made < 0) return;
  sockaddr_un name;
  const uint64_t number = RandomBits();
  const socklen_t size = NameOf(number, name);
  if (bind(made, reinterpret_cast<const sockaddr*>(&name), size) != 0 ||
      setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &kIdle, sizeof kIdle) != 0) {
    close(made);
    return;
  }
  socket_ = made;
  number_ = number;
}

uint64_t Bell::number() {
  MutexLock lock(mutex_);
  if (!made_) Make();
  return number_;
}

void Bell::Ring(uint64_t number) {
  if (number == 0 || Broken("ranks_bell")) return;
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

void Bell::StartListening() {
  MutexLock lock(mutex_);
  if (listening_.load(std::memory_order_relaxed)) return;
  if (!made_) Make();
  // Even if there is no socket, or no thread: both would be refused again, at every write.
  listening_.store(true, std::memory_order_relaxed);
  if (socket_ < 0) return;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the program's signals stay with the program
  try {
    std::thread([this, socket = socket_] { ListenOn(socket); }).detach();
  } catch (const std::exception&) {  // then bytes linger
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Bell::ListenOn(int socket) {
  for (;;) {
    char rings[64];
    if (recv(socket, rings, sizeof rings, 0) >= 0) {
      while (recv(socket, rings, sizeof rings, MSG_DONTWAIT) >= 0) {
      }
      try {
        AnswerAll();
      } catch (const std::bad_alloc&) {  // then bytes linger
      }
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return;  // it was closed by mistake: nobody listens any more
    MutexLock lock(mutex_);
    if (recently_held_.exchange(false, std::memory_order_relaxed)) continue;
    listening_.store(false, std::memory_order_relaxed);
    return;
  }
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
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
    number_ = 0;
    made_ = false;
    listening_.store(false, std::memory_order_relaxed);
    answers_.clear();
  }
  mutex_.unlock();
}

}  // namespace tidelane
