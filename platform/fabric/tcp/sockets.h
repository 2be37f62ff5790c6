// Non-blocking TCP sockets, the text by which they are configured, and the set of those that an
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
// Of "10.0.0.1:4711" or "server7:4711"; nothing if the text is neither. Looks no name up.
std::optional<HostAndPort> host_and_port(std::string_view text);
// The IPv4 address of a host, of which this is the name or the address; nothing if there is none.
// A name may take seconds.
std::optional<std::string> look_up(const std::string& host);

// A listening socket.
struct ListeningSocket {
  File file;
  std::uint16_t port = 0;
};
// At an IPv4 address of this host, and a free port of it. Throws PlatformError.
ListeningSocket listen_on(const std::string& address);
// At this port, or a free one if it is 0; nothing, with errno, if that cannot be.
std::optional<ListeningSocket> try_to_listen(const std::string& address, std::uint16_t port);
// The next connection of a listening socket; nothing if none has come.
File accept_from(int listening);
// Begins to connect; the socket becomes writable when that has ended. Nothing if it cannot begin.
File begin_to_connect(const std::string& host, std::uint16_t port);
// Whether it has ended well.
bool has_connected(int socket);

// Send or receive as much as is possible now; nothing at the end of the connection.
std::optional<std::size_t> send_some(int socket, std::span<const std::byte> bytes);
std::optional<std::size_t> receive_some(int socket, std::span<std::byte> into);

// Somebody who waits for a socket.
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
  // Calls the watchers of the sockets that are ready, without waiting; false if none is.
  bool dispatch();
  bool empty() const { return watched_ == 0; }
  // Is readable while a socket is ready.
  int get() const { return epoll_.get(); }

 private:
  File epoll_;
  std::size_t watched_ = 0;
  std::array<epoll_event, 64> batch_{};
  std::size_t next_ = 0;   // of the batch that is being dispatched
  std::size_t count_ = 0;  // 0: none is
};

}  // namespace perdura::fabric::tcp
