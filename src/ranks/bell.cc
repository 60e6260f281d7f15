#include "ranks/bell.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <utility>

#include "base/fresh_file.h"
#include "extent/test_hooks.h"
#include "ranks/named_socket.h"

namespace tidelane {
namespace {

constexpr SocketKind kBell{.prefix = "tidelane-", .type = SOCK_DGRAM};

}  // namespace

Bell& Bell::Get() {
  static Bell* const bell = new Bell;
  return *bell;
}

uint64_t Bell::number() {
  MutexLock lock(mutex_);
  if (number_ == 0) number_ = RandomBits() | 1;
  return number_;
}

void Bell::Ring(uint64_t number) {
  if (number == 0 || MutationEnabled("ranks_bell")) return;
  const char ring = 0;
  // Its rings fill a queue at most: then it is about to hear one.
  SendTo(kBell, number, &ring, sizeof ring);
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
  socket_ = NewNamedSocket(kBell, number_);
  if (socket_ >= 0) static_cast<void>(StartListener([this] { Listen(); }));  // if not, bytes linger
}

void Bell::Listen() {
  int socket = -1;
  uint64_t number = 0;
  {
    MutexLock lock(mutex_);
    socket = socket_;
    number = number_;
  }
  while (IsNamed(kBell, socket, number)) {
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
  if (IsNamed(kBell, socket_, number_)) close(socket_);
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
