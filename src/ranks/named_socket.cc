#include "ranks/named_socket.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "base/thread_name.h"

namespace tidelane {
namespace {

constexpr timeval kIdle{.tv_sec = 2, .tv_usec = 0};

struct Address {
  Address(SocketKind kind, uint64_t number) {
    name.sun_family = AF_UNIX;
    const int length = std::snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "%s%016" PRIx64,
                                     kind.prefix, number);
    size =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }

  sockaddr_un name{};
  socklen_t size = 0;
};

}  // namespace

int NewSocket(SocketKind kind) { return socket(AF_UNIX, kind.type | SOCK_CLOEXEC, 0); }

int NewNamedSocket(SocketKind kind, uint64_t number) {
  const int made = NewSocket(kind);
  if (made < 0) return -1;
  const Address address(kind, number);
  if (bind(made, address.get(), address.size) == 0 &&
      setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &kIdle, sizeof kIdle) == 0 &&
      (kind.type != SOCK_STREAM || listen(made, SOMAXCONN) == 0)) {
    return made;
  }
  close(made);
  return -1;
}

bool IsNamed(SocketKind kind, int socket, uint64_t number) {
  sockaddr_un found;
  socklen_t size = sizeof found;
  const Address wanted(kind, number);
  return socket >= 0 && getsockname(socket, reinterpret_cast<sockaddr*>(&found), &size) == 0 &&
         size == wanted.size && std::memcmp(&found, &wanted.name, size) == 0;
}

void SendTo(SocketKind kind, uint64_t number, const void* message, size_t bytes) {
  const int from = NewSocket(kind);
  if (from < 0) return;
  const Address address(kind, number);
  static_cast<void>(
      sendto(from, message, bytes, MSG_DONTWAIT | MSG_NOSIGNAL, address.get(), address.size));
  close(from);
}

bool ConnectTo(SocketKind kind, int socket, uint64_t number) {
  const Address address(kind, number);
  int connected = 0;
  do {
    connected = connect(socket, address.get(), address.size);
  } while (connected != 0 && errno == EINTR);
  return connected == 0 || errno == EISCONN;
}

bool StartListener(std::function<void()> listen) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the program's signals stay with the program
  bool started = true;
  try {
    std::thread([listen = std::move(listen)] {
      NameThread();
      listen();
    }).detach();
  } catch (const std::exception&) {
    started = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace tidelane
