#include "platform/sockets/sockets_rendezvous.h"

#include <fmt/format.h>

#include <cerrno>

#include "platform/base/error.h"
#include "platform/runtime/work.h"

namespace perdura {

using fabric::Address;
using fabric::tcp::HostAndPort;
using fabric::tcp::Listener;
using fabric::tcp::ListenerSocket;
using fabric::tcp::ListeningSocket;

namespace {

// The same in all processes: what is at an address is the node, whichever process serves it.
constexpr std::uint64_t kToken = 1;
constexpr std::uint64_t kSeedOfJob = 0x534F434B;

std::uint16_t tcp_port(const HostAndPort& address, std::uint32_t port) {
  return static_cast<std::uint16_t>(address.port + port);
}

}  // namespace

SocketsRendezvous::SocketsRendezvous(std::string_view job,
                                     const std::map<fabric::NodeId, HostAndPort>& addresses)
    : job_(hash64(std::as_bytes(std::span(job)), kSeedOfJob)) {
  for (const auto& [node, given] : addresses) {
    const auto address = fabric::tcp::look_up(given.host);
    if (!address) {
      throw UsageError(fmt::format("{}: there is no host of this name or address", given.host));
    }
    hosts_[node] = {given, *address};
  }
}

void SocketsRendezvous::listen(fabric::NodeId node, std::uint32_t ports) {
  const Host& host = hosts_.at(node);
  for (std::uint32_t port = 0; port < ports; ++port) {
    const std::uint16_t number = tcp_port(host.given, port);
    auto socket = fabric::tcp::try_to_listen(host.address, number);
    if (!socket) {
      const int problem = errno;
      const std::string where = fmt::format("{}:{}", host.given.host, number);
      if (problem == EADDRNOTAVAIL) {
        throw UsageError(fmt::format("{}: is not an address of this host", where));
      }
      if (problem == EADDRINUSE) {
        throw UsageError(fmt::format("{}: a process listens there already", where));
      }
      throw PlatformError(fmt::format("{}: {}", where, pmem::mapped::error_text(problem)));
    }
    listening_.emplace(std::pair(node, static_cast<fabric::Port>(port)), std::move(*socket));
  }
}

ListenerSocket SocketsRendezvous::begin_to_listen(Address address) {
  const std::scoped_lock lock(mutex_);
  const auto found = listening_.find({address.node, address.port});
  if (found == listening_.end()) return {fabric::tcp::listen_on(host()), kToken};
  ListenerSocket result{std::move(found->second), kToken};
  listening_.erase(found);
  return result;
}

std::optional<Listener> SocketsRendezvous::find(Address address) {
  const auto found = hosts_.find(address.node);
  if (found == hosts_.end()) return std::nullopt;
  const Host& host = found->second;
  return Listener{
      .hosts = {host.address}, .port = tcp_port(host.given, address.port), .token = kToken};
}

}  // namespace perdura
