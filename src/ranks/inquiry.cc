#include "ranks/inquiry.h"

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <thread>
#include <utility>

#include "base/fresh_file.h"
#include "base/thread_name.h"

namespace tidelane {
namespace {

constexpr timeval kIdle{.tv_sec = 2, .tv_usec = 0};
constexpr timeval kPatience{.tv_sec = 10, .tv_usec = 0};  // with who asks, and stops
constexpr uint64_t kMostWords = 256;

// A name that is no file's: it is gone with the process.
socklen_t NameOf(uint64_t number, sockaddr_un& name) {
  name = {};
  name.sun_family = AF_UNIX;
  const int length = std::snprintf(name.sun_path + 1, sizeof name.sun_path - 1,
                                   "tidelane-desk-%016" PRIx64, number);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
}

// Whether the descriptor is the desk of that number.
bool IsNamed(int socket, uint64_t number) {
  sockaddr_un found;
  sockaddr_un wanted;
  socklen_t size = sizeof found;
  const socklen_t length = NameOf(number, wanted);
  return socket >= 0 && getsockname(socket, reinterpret_cast<sockaddr*>(&found), &size) == 0 &&
         size == length && std::memcmp(&found, &wanted, length) == 0;
}

int NewSocket() { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }

// Of this user, as the system says.
bool IsOurs(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == geteuid();
}

bool SendAll(int connection, const void* from, size_t bytes) {
  const auto* at = static_cast<const std::byte*>(from);
  while (bytes > 0) {
    const ssize_t sent = send(connection, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return true;
}

bool ReadAll(int connection, void* to, size_t bytes) {
  auto* at = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const ssize_t got = recv(connection, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

}  // namespace

InquiryDesk& InquiryDesk::Get() {
  static InquiryDesk* const desk = new InquiryDesk;
  return *desk;
}

uint64_t InquiryDesk::number() {
  MutexLock lock(mutex_);
  if (number_ == 0) number_ = RandomBits() >> 1 | 1;
  return number_;
}

uint64_t InquiryDesk::Add(std::weak_ptr<void> whose, Answer answer) {
  MutexLock lock(mutex_);
  std::erase_if(subjects_, [](const Subject& one) { return one.whose.expired(); });
  subjects_.push_back({++subject_numbers_, std::move(whose), std::move(answer)});
  return subject_numbers_;
}

bool InquiryDesk::Hold() {
  MutexLock lock(mutex_);
  if (!listening_ && !StartListening()) return false;
  ++held_;
  recently_held_ = true;
  return true;
}

void InquiryDesk::LetGo() {
  MutexLock lock(mutex_);
  --held_;
}

bool InquiryDesk::Make() {
  const int made = NewSocket();
  if (made < 0) return false;
  sockaddr_un name;
  const socklen_t size = NameOf(number_, name);
  if (bind(made, reinterpret_cast<const sockaddr*>(&name), size) != 0 ||
      setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &kIdle, sizeof kIdle) != 0 ||
      listen(made, SOMAXCONN) != 0) {
    close(made);
    return false;
  }
  socket_ = made;
  return true;
}

bool InquiryDesk::StartListening() {
  if (number_ == 0 || !Make()) return false;
  listening_ = true;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the program's signals stay with the program
  try {
    std::thread([this, socket = socket_, number = number_] {
      NameThread();
      ListenOn(socket, number);
    }).detach();
  } catch (const std::exception&) {
    EndListening();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return listening_;
}

void InquiryDesk::ListenOn(int socket, uint64_t number) {
  // A program may close descriptors that are not its own, and get the number for something of its own.
  while (IsNamed(socket, number)) {
    const int connection = accept4(socket, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection >= 0) {
      AnswerOn(connection);
      close(connection);
    } else if (errno == EAGAIN && MayEnd()) {
      return;
    }
  }
  MutexLock lock(mutex_);
  EndListening();
}

// Under the lock, so that who holds something from now on finds nobody listening, and starts another one.
bool InquiryDesk::MayEnd() {
  MutexLock lock(mutex_);
  if (held_ != 0 || std::exchange(recently_held_, false)) return false;
  EndListening();
  return true;
}

void InquiryDesk::EndListening() {
  if (IsNamed(socket_, number_)) close(socket_);
  socket_ = -1;
  listening_ = false;
}

// Without the lock: an answer takes as long as it takes.
void InquiryDesk::AnswerOn(int connection) {
  uint64_t head[2];  // the subject, and how many words the question has
  if (!IsOurs(connection) ||
      setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience) != 0 ||
      setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience) != 0 ||
      !ReadAll(connection, head, sizeof head) || head[1] > kMostWords) {
    return;
  }
  uint64_t question[kMostWords];
  if (!ReadAll(connection, question, head[1] * sizeof *question)) return;
  try {
    std::shared_ptr<void> there;
    Answer answer;
    {
      MutexLock lock(mutex_);
      const auto subject = std::ranges::find(subjects_, head[0], &Subject::number);
      if (subject == subjects_.end()) return;
      there = subject->whose.lock();
      answer = subject->answer;
    }
    if (there == nullptr) return;
    answer({question, head[1]}, [connection](const void* from, size_t bytes) {
      return SendAll(connection, from, bytes);
    });
  } catch (const std::bad_alloc&) {  // who asks finds the connection closed
  }
}

void InquiryDesk::UnlockAfterFork(bool child) {
  if (child) {
    EndListening();  // else it would keep the parent's socket after that one has ended
    number_ = 0;
    held_ = 0;
    subjects_.clear();
  }
  mutex_.unlock();
}

std::optional<Inquiry> Inquiry::Ask(uint64_t desk, uint64_t subject,
                                    std::span<const uint64_t> question) {
  const int made = NewSocket();
  if (made < 0) return std::nullopt;
  Inquiry inquiry(made);
  sockaddr_un name;
  const socklen_t size = NameOf(desk, name);
  int connected = 0;
  do {
    connected = connect(made, reinterpret_cast<const sockaddr*>(&name), size);
  } while (connected != 0 && errno == EINTR);
  if (connected != 0 && errno != EISCONN) return std::nullopt;
  const uint64_t head[2] = {subject, question.size()};
  if (question.size() > kMostWords || !IsOurs(made) || !SendAll(made, head, sizeof head) ||
      !SendAll(made, question.data(), question.size_bytes())) {
    return std::nullopt;
  }
  return inquiry;
}

Inquiry::Inquiry(Inquiry&& other) noexcept : connection_(std::exchange(other.connection_, -1)) {}

Inquiry::~Inquiry() {
  if (connection_ >= 0) close(connection_);
}

bool Inquiry::Read(void* to, size_t bytes) { return ReadAll(connection_, to, bytes); }

}  // namespace tidelane
