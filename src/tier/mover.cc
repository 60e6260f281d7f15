#include "tier/mover.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/config.h"
#include "tier/drain.h"
#include "tier/pace.h"
#include "tier/spares.h"
#include "tier/trouble.h"

namespace tidelane::tier {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kLockName[] = "mover.lock";
constexpr char kSocketName[] = "mover.socket";
constexpr char kThere[] = "?";  // whether somebody is there
constexpr size_t kMessage = 64;
constexpr int kWaiting = 64;  // handovers that nobody has taken yet
constexpr timeval kPatience{.tv_sec = 0, .tv_usec = 200'000};
constexpr auto kLookAround = std::chrono::milliseconds(500);
// What is kept for the next files, while it lives, at most.
constexpr uint64_t kSpares = uint64_t{512} << 20;
// How long until it is tried again: soon, as who only looks is done soon; later, the longer somebody has it.
constexpr std::chrono::milliseconds kAfterUse(20);
constexpr std::chrono::milliseconds kAfterLongUse(500);
constexpr std::chrono::milliseconds kAfterFailure = std::chrono::seconds(1);
constexpr auto kLongestPause = std::chrono::minutes(1);
// A program that closes a file soon keeps nobody waiting.
constexpr auto kUsualUse = std::chrono::seconds(1);

// Memory is short where a control group says so.
uint64_t MostSpares(const Place& place) {
  return place.in_memory ? std::min(kSpares, ShareOfMemory() / 2) : kSpares;
}

// A path of the socket that fits into its address, wherever the tier is.
sockaddr_un AddressOf(const Place& place) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s",
                place.folder.get(), kSocketName);
  return address;
}

Descriptor Socket(int flags) {
  Descriptor made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
  if (made.valid()) {
    setsockopt(made.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
    setsockopt(made.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  }
  return made;
}

// A message with one descriptor.
union Control {
  cmsghdr header;
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

struct Handed {
  std::string entry;
  Descriptor file;
};

bool Receive(int connection, Handed& handed) {
  std::array<char, kMessage> text{};
  iovec part{text.data(), text.size() - 1};
  Control control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  if (recvmsg(connection, &message, MSG_CMSG_CLOEXEC) <= 0) return false;
  for (cmsghdr* at = CMSG_FIRSTHDR(&message); at != nullptr; at = CMSG_NXTHDR(&message, at)) {
    if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(at), sizeof fd);
    handed.file = Descriptor(fd);
  }
  handed.entry = text.data();
  return true;
}

class Mover {
 public:
  Mover(const Place& place, const MoverOptions& options, Descriptor listening)
      : place_(place),
        options_(options),
        spares_(MostSpares(place)),
        rate_(options.rate),
        listening_(std::move(listening)) {}

  void Run() {
    Entry::RemoveDrafts(place_);
    Trouble::RemoveDrafts(place_);
    std::thread taking([this] { Take(); });
    std::vector<std::thread> others;
    for (unsigned i = 1; i < options_.streams; ++i) others.emplace_back([this] { MoveOthers(); });
    MoveUntilIdle();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ending_ = true;
    }
    handed_one_.notify_all();
    // Who comes from now on starts another one.
    unlinkat(place_.folder.get(), kSocketName, 0);
    shutdown(listening_.get(), SHUT_RDWR);
    taking.join();
    for (std::thread& other : others) other.join();
    found_.clear();  // what is there now
    Pace pace(rate_);
    bool waits = false;
    while (MoveOne(pace, waits)) {
    }
    DropSpares(place_);
  }

 private:
  // When an entry is looked at again.
  struct Next {
    Clock::time_point at;
    bool hopeless = false;                            // as long as nobody does anything
    Descriptor file;                                  // that was handed over
    Interrupted interrupted;                          // how far it had come
    std::chrono::milliseconds pause = kAfterFailure;  // after the next failure
    std::chrono::milliseconds use = kAfterUse;        // after the next one that finds it in use
    Clock::time_point in_use_since;                   // none: it was not
  };
  // An entry that a thread moves.
  struct Taken {
    std::string entry;
    Descriptor file;  // that was handed over
    Interrupted interrupted;
  };

  void Take() {
    while (!ending_) {
      pollfd ready{.fd = listening_.get(), .events = POLLIN, .revents = 0};
      if (poll(&ready, 1, -1) < 0 && errno != EINTR) return;
      const Descriptor connection(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!connection.valid()) continue;
      setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
      Handed handed;
      if (!Receive(connection.get(), handed)) continue;
      if (handed.entry != kThere) {
        const std::lock_guard<std::mutex> lock(mutex_);
        handed_.push_back(std::move(handed));
        handed_one_.notify_one();
      }
      static_cast<void>(send(connection.get(), "ok", 2, MSG_NOSIGNAL));
    }
  }

  void MoveUntilIdle() {
    Pace pace(rate_);
    auto busy_at = Clock::now();
    for (;;) {
      bool waits = false;
      const bool busy = MoveOne(pace, waits);
      if (busy || waits) busy_at = Clock::now();
      if (busy) continue;
      if (Clock::now() - busy_at > options_.idle) return;
      AwaitOne();
    }
  }
  void MoveOthers() {
    Pace pace(rate_);
    for (bool waits = false; !ending_;) {
      if (!MoveOne(pace, waits)) AwaitOne();
    }
  }
  void AwaitOne() {
    std::unique_lock<std::mutex> lock(mutex_);
    auto until = Clock::now() + kLookAround;
    for (const auto& [name, next] : next_) {
      if (!moving_.contains(name)) until = std::min(until, next.at);
    }
    handed_one_.wait_until(lock, until,
                           [this] { return ending_ || FirstHanded() != handed_.end(); });
  }

  // False: there is nothing to be moved now. `waits`: something is, later, or by another thread.
  bool MoveOne(Pace& pace, bool& waits) {
    Taken taken;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!TakeHanded(taken) && !TakeFound(taken, waits)) return false;
      moving_.insert(taken.entry);
    }
    Move(pace, taken);
    return true;
  }

  // With the lock held, as all that follows until Move.
  std::deque<Handed>::iterator FirstHanded() {
    return std::ranges::find_if(
        handed_, [this](const Handed& handed) { return !moving_.contains(handed.entry); });
  }

  bool TakeHanded(Taken& taken) {
    const auto handed = FirstHanded();
    if (handed == handed_.end()) return false;
    taken = {.entry = std::move(handed->entry), .file = std::move(handed->file), .interrupted = {}};
    handed_.erase(handed);
    if (const auto before = next_.find(taken.entry); before != next_.end()) {
      // Another opening of the file, of a close before this one, would be in the way of a lease.
      before->second.file = Descriptor();
      before->second.in_use_since = {};
      taken.interrupted = std::exchange(before->second.interrupted, {});
    }
    return true;
  }

  // Whatever nobody has handed over. All that is there is looked at in turn before the folder is read again.
  bool TakeFound(Taken& taken, bool& waits) {
    if (found_.empty()) Look();
    while (!found_.empty()) {
      const std::string name = std::move(found_.front());
      found_.pop_front();
      if (moving_.contains(name)) continue;
      const auto next = next_.find(name);
      if (next == next_.end()) {
        taken.entry = name;
        return true;
      }
      if (Clock::now() >= next->second.at) {
        taken = {.entry = name,
                 .file = std::move(next->second.file),
                 .interrupted = std::exchange(next->second.interrupted, {})};
        return true;
      }
    }
    waits = !moving_.empty() ||
            std::ranges::any_of(next_, [](const auto& next) { return !next.second.hopeless; });
    return false;
  }
  void Look() {
    const std::vector<std::string> found = Entry::AllIn(place_);
    Trouble::RemoveStray(place_, found);
    // Others have brought home, or given up, what is not there any more.
    std::erase_if(next_, [&](const auto& next) {
      return !std::ranges::binary_search(found, next.first) && !moving_.contains(next.first);
    });
    found_.assign(found.begin(), found.end());
  }

  void Move(Pace& pace, Taken& taken) {
    const std::string& name = taken.entry;
    Entry entry;
    Status why;
    const int unread = Entry::Read(place_, name, entry);
    const Drained drained = unread != 0 ? Drained::kFailed : Drain(pace, entry, taken, why);
    const std::lock_guard<std::mutex> lock(mutex_);
    moving_.erase(name);
    if (unread != 0) {
      next_.erase(name);
      // What cannot be read stays, and is no work.
      if (unread != ENOENT) {
        Next& next = next_[name];
        next.at = Clock::now() + kAfterFailure;
        next.hopeless = true;
      }
      return;
    }
    if (drained == Drained::kYes || drained == Drained::kUseless) {
      next_.erase(name);
      return;
    }
    if (drained == Drained::kFailed)
      std::fprintf(stderr, "tidelane-mover: %s\n", why.Message().c_str());
    Next& next = next_[name];
    Wait(next, drained, why, pace.writes());
    if (const std::string reason = ReasonOf(next, drained, why); !reason.empty())
      Trouble::Tell(place_, name, reason, drained == Drained::kInUse ? 0 : pace.bytes());
    next.file = std::move(taken.file);
    // Of what storage has refused everything is tried again.
    if (drained == Drained::kInUse) next.interrupted = std::move(taken.interrupted);
  }

  Drained Drain(Pace& pace, const Entry& entry, Taken& taken, Status& why) const try {
    Trouble before;
    const bool had_trouble = Trouble::Read(place_, entry.name, before);
    // Beyond where it stood still it goes on.
    pace.Begin(before.bytes, [this, had_trouble, name = entry.name] {
      if (had_trouble) Trouble::Remove(place_, name);
    });
    return tier::Drain(place_, entry, taken.file, spares_, why, &pace, &taken.interrupted);
  } catch (const std::bad_alloc&) {
    why = Status::Failed(ENOMEM, "recover");
    return Drained::kFailed;
  }

  // Until it is tried again. `was_free`: nobody had it when it was begun.
  static void Wait(Next& next, Drained drained, const Status& why, bool was_free) {
    const auto now = Clock::now();
    if (drained == Drained::kInUse) {
      if (was_free) next.use = kAfterUse;
      if (was_free || next.in_use_since == Clock::time_point()) next.in_use_since = now;
      next.at = now + next.use;
      next.use = std::min(2 * next.use, kAfterLongUse);
      next.hopeless = false;
      return;
    }
    next.in_use_since = {};
    next.at = now + next.pause;
    next.pause = std::min<std::chrono::milliseconds>(2 * next.pause, kLongestPause);
    // A full disk may be so no more.
    next.hopeless = drained == Drained::kLost || (why.code() != ENOSPC && why.code() != EDQUOT);
  }

  // Empty: that it waits is as it should be.
  static std::string ReasonOf(const Next& next, Drained drained, const Status& why) {
    if (drained == Drained::kFailed) return Trouble::ReasonOf(why);
    if (drained == Drained::kLost) return "the file is not at its place any more";
    return Clock::now() - next.in_use_since < kUsualUse ? std::string()
                                                        : "a program has the file open";
  }

  const Place& place_;
  const MoverOptions options_;
  const uint64_t spares_;  // bytes
  Rate rate_;
  const Descriptor listening_;
  std::atomic<bool> ending_{false};
  std::mutex mutex_;
  std::condition_variable handed_one_;
  std::deque<Handed> handed_;
  std::deque<std::string> found_;  // and not looked at yet
  std::set<std::string> moving_;
  std::map<std::string, Next> next_;
};

bool Say(const Place& place, const std::string& text, int fd) {
  const Descriptor connection = Socket(0);
  const sockaddr_un address = AddressOf(place);
  if (!connection.valid() ||
      connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return false;
  std::string words = text;
  iovec part{words.data(), words.size()};
  Control control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    cmsghdr* const at = CMSG_FIRSTHDR(&message);
    at->cmsg_level = SOL_SOCKET;
    at->cmsg_type = SCM_RIGHTS;
    at->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(at), &fd, sizeof fd);
  }
  std::array<char, 4> answer{};
  return sendmsg(connection.get(), &message, MSG_NOSIGNAL) > 0 &&
         recv(connection.get(), answer.data(), answer.size(), 0) > 0;
}

// Who ends it takes nothing from anybody: what was begun is begun again. But spares are of no use without it.
void EndBySignals(const std::string& path) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread([path, signals] {
    int number = SIGTERM;
    while (sigwait(&signals, &number) != 0) {
    }
    if (Place place; Place::OpenAt(path, place).ok()) {
      unlinkat(place.folder.get(), kSocketName, 0);
      DropSpares(place);
    }
    signal(number, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    raise(number);
  }).detach();
}

}  // namespace

int RunMover(const std::string& path, const MoverOptions& options) {
  signal(SIGIO, SIG_IGN);  // leases are looked at (tier/moved_file.h)
  Place place;
  if (const Status status = Place::OpenAt(path, place); !status.ok()) {
    std::fprintf(stderr, "tidelane-mover: %s\n", status.Message().c_str());
    return status.code();
  }
  const Descriptor lock(openat(place.folder.get(), kLockName,
                               O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!lock.valid()) return errno;
  // One that is about to end is asked in vain, and takes no file any more.
  while (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return errno;
    if (Say(place, kThere, -1)) return 0;
    std::this_thread::sleep_for(kLookAround / 10);
  }
  unlinkat(place.folder.get(), kSocketName, 0);
  Descriptor listening = Socket(SOCK_NONBLOCK);
  const sockaddr_un address = AddressOf(place);
  if (!listening.valid() ||
      bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listening.get(), kWaiting) != 0)
    return errno;
  EndBySignals(path);
  Mover(place, options, std::move(listening)).Run();
  return 0;
}

bool HandOver(const Place& place, const std::string& entry, int fd) {
  return Say(place, entry, fd);
}

bool HasMover(const Place& place) {
  const Descriptor lock(openat(place.folder.get(), kLockName, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!lock.valid()) return false;
  return flock(lock.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace tidelane::tier
