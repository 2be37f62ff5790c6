#include "rpc/connect.h"

#include <fmt/core.h>

#include "platform/base/error.h"

namespace perdura::rpc {

Task<fabric::Connection> connect(fabric::Endpoint& endpoint, std::string_view who,
                                 fabric::Address server, fabric::QueuePairOptions options,
                                 std::span<const std::byte> hello) {
  fabric::Connection connection = co_await endpoint.connect(
      server, options, std::vector<std::byte>(hello.begin(), hello.end()));
  if (connection.status != fabric::Status::success) {
    throw PlatformError(fmt::format("cannot connect to {} at node {}, port {}: {}", who,
                                    server.node, server.port, to_string(connection.status)));
  }
  co_return connection;
}

}  // namespace perdura::rpc
