// The TCP connections of the control plane.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "platform/base/units.h"
#include "platform/pmem/mapped/mapping.h"

namespace perdura::fabric::verbs {

using pmem::mapped::File;  // closes itself

class Socket {
 public:
  Socket() = default;
  explicit Socket(File file) : file_(std::move(file)) {}
  int get() const { return file_.get(); }

  // False if the other end is gone.
  bool send(std::span<const std::byte> bytes) const;
  // Returns what has arrived, without waiting: empty if nothing has, nullopt at the end of the
  // connection.
  std::optional<std::vector<std::byte>> receive() const;

 private:
  File file_;
};

// Where the coordinator waits for the other processes.
class ControlListener {
 public:
  ControlListener();  // throws PlatformError
  // For the other processes: a token of this job, the addresses of this host and the port, in one
  // line.
  const std::string& address() const { return address_; }
  std::uint64_t token() const { return token_; }
  // The next connection, or nullopt if none comes in time.
  std::optional<Socket> accept(Milliseconds timeout) const;

 private:
  File file_;
  std::uint64_t token_ = 0;
  std::string address_;
};

struct CoordinatorAddress {
  std::uint64_t token = 0;
  std::vector<std::string> hosts{};
  std::uint16_t port = 0;
};
// Returns nullopt if the text is not in the format of ControlListener::address().
std::optional<CoordinatorAddress> parse_coordinator(const std::string& text);

// Returns nullopt if there is no answer in time.
std::optional<Socket> connect_to(const std::string& host, std::uint16_t port, Milliseconds timeout);

// Wakes a thread that polls descriptors.
class Event {
 public:
  Event();  // throws PlatformError
  int get() const { return file_.get(); }
  void set() const;
  void clear() const;

 private:
  File file_;
};

// IPv4 addresses of this host's interfaces that are up, the loopback's last.
std::vector<std::string> local_addresses();

// The kernel's boot id: the same for all processes of a host.
std::string boot_id();

}  // namespace perdura::fabric::verbs
