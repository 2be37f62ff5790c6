// Where socket endpoints of a job find each other: maps the address of an endpoint to the host and
// the TCP port at which it listens. Each platform has its own. Used by all threads of a process.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "platform/fabric/tcp/sockets.h"
#include "platform/fabric/types.h"

namespace perdura::fabric::tcp {

struct Listener {
  std::vector<std::string> hosts{};  // IPv4 addresses, in the order in which to try them
  std::uint16_t port = 0;
  // Drawn at random for each listener, so that a port that another process has taken meanwhile is
  // not mistaken for it.
  std::uint64_t token = 0;
  bool operator==(const Listener&) const = default;
};

// The socket of an endpoint that listens, and the token of its Listener.
struct ListenerSocket {
  ListeningSocket socket;
  std::uint64_t token = 0;
};

class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  // The same in all processes of a job, and different from that of other jobs.
  virtual std::uint64_t job() const = 0;
  // The IPv4 address on which endpoints of this process listen.
  virtual std::string host() const = 0;

  // Claims the address for an endpoint of this process. Throws UsageError if another endpoint has
  // it.
  void claim(Address address);
  void release(Address address);

  // By default a socket on a free port of host(), with a random token. Throws PlatformError.
  virtual ListenerSocket begin_to_listen(Address address);
  // Announces that the endpoint listens; its address must have been claimed. Throws PlatformError.
  virtual void publish(Address address, const Listener& listener) = 0;
  virtual void withdraw(Address address) = 0;
  // Returns nullopt if no listener is known at the address. The result may be out of date.
  virtual std::optional<Listener> find(Address address) = 0;

 private:
  std::mutex mutex_;
  std::set<std::pair<NodeId, Port>> claimed_;
};

}  // namespace perdura::fabric::tcp
