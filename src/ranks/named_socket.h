/// \file
/// A socket with a number for a name, by which a process of this machine is found by those that it has told the number; and the thread that
/// listens to it. The name is no file's: it is gone with the process.
///
/// Thread safety: pure.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>

namespace tidelane {

/// What a kind of socket is called, and whether messages come to it or connections.
struct SocketKind {
  const char* prefix;
  int type;  ///< SOCK_DGRAM or SOCK_STREAM
};

/// One without a name, to speak from; -1: the system refuses it.
int NewSocket(SocketKind kind);
/// One that is called so; -1: the system refuses it. Who waits at it looks up every other second, with EAGAIN.
int NewNamedSocket(SocketKind kind, uint64_t number);
/// Whether the descriptor is the socket of that number: a program may close descriptors that are not its own, and get the
/// number for something of its own.
bool IsNamed(SocketKind kind, int socket, uint64_t number);

/// Sends a message to it, without waiting; nothing is said if it does not arrive.
void SendTo(SocketKind kind, uint64_t number, const void* message, size_t bytes);
/// False: nobody listens there.
bool ConnectTo(SocketKind kind, int socket, uint64_t number);

/// Runs it in a thread of its own that gets none of the program's signals. False: the system refuses one.
bool StartListener(std::function<void()> listen);

}  // namespace tidelane
