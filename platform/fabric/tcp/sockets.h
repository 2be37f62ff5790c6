// Non-blocking TCP sockets, the text by which they are configured, and the set of sockets that an
// endpoint waits for.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "platform/pmem/mapped/mapping.h"

namespace perdura::fabric::tcp {

using pmem::mapped::File;  // closes itself

struct HostAndPort {
  std::string host;
  std::uint16_t port = 0;
  friend bool operator==(const HostAndPort&, const HostAndPort&) = default;
};
// Parses "10.0.0.1:4711" or "server7:4711"; returns nullopt if the text is neither. Does not look
// up names.
std::optional<HostAndPort> host_and_port(std::string_view text);
// The IPv4 address of a host, given by name or address; nullopt if there is none. Looking up a name
// may take seconds.
std::optional<std::string> look_up(const std::string& host);

// A listening socket.
struct ListeningSocket {
  File file;
  std::uint16_t port = 0;
};
// Listens at an IPv4 address of this host, on a free port. Throws PlatformError.
ListeningSocket listen_on(const std::string& address);
// Listens on this port, or a free one if it is 0; returns nullopt, with errno, on failure.
std::optional<ListeningSocket> try_to_listen(const std::string& address, std::uint16_t port);
// The next connection of a listening socket; null if none has come.
File accept_from(int listening);
// Begins to connect; the socket becomes writable when that has ended. Returns null if it cannot
// begin.
File begin_to_connect(const std::string& host, std::uint16_t port);
// True if begin_to_connect() has succeeded.
bool has_connected(int socket);

// Both transfer as much as is possible now and return the number of bytes; nullopt at the end of
// the connection.
std::optional<std::size_t> send_some(int socket, std::span<const std::byte> bytes);
std::optional<std::size_t> receive_some(int socket, std::span<std::byte> into);

// Is notified when a socket is ready.
class Watcher {
 public:
  virtual void ready(std::uint32_t events) = 0;

 protected:
  ~Watcher() = default;
};

// An epoll instance, level-triggered. A watcher may remove itself and others while it is called.
class EventSet {
 public:
  EventSet();  // throws PlatformError
  void add(int socket, Watcher& watcher, std::uint32_t events);
  void change(int socket, Watcher& watcher, std::uint32_t events);
  void remove(int socket, const Watcher& watcher);
  // Calls the watchers of the sockets that are ready, without waiting; returns false if none is.
  bool dispatch();
  bool empty() const { return watched_ == 0; }
  // A descriptor that is readable while a socket is ready.
  int get() const { return epoll_.get(); }

 private:
  File epoll_;
  std::size_t watched_ = 0;
  std::array<epoll_event, 64> batch_{};
  std::size_t next_ = 0;   // position in the batch that is being dispatched
  std::size_t count_ = 0;  // 0: no batch is being dispatched
};

}  // namespace perdura::fabric::tcp
