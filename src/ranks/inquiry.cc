#include "ranks/inquiry.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "base/fresh_file.h"
#include "ranks/named_socket.h"

namespace tidelane {
namespace {

constexpr timeval kPatience{.tv_sec = 10, .tv_usec = 0};  // with who asks, and stops
constexpr uint64_t kMostWords = 256;

constexpr SocketKind kDesk{.prefix = "tidelane-desk-", .type = SOCK_STREAM};

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

bool InquiryDesk::StartListening() {
  socket_ = number_ == 0 ? -1 : NewNamedSocket(kDesk, number_);
  listening_ = socket_ >= 0;
  if (listening_ && !StartListener([this] { Listen(); })) EndListening();
  return listening_;
}

void InquiryDesk::Listen() {
  int socket = -1;
  uint64_t number = 0;
  {
    MutexLock lock(mutex_);
    socket = socket_;
    number = number_;
  }
  while (IsNamed(kDesk, socket, number)) {
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
  if (IsNamed(kDesk, socket_, number_)) close(socket_);
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
  const int made = NewSocket(kDesk);
  if (made < 0) return std::nullopt;
  Inquiry inquiry(made);
  if (!ConnectTo(kDesk, made, desk)) return std::nullopt;
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
