// How a client comes to its session.
#pragma once

#include <span>
#include <string_view>

#include "platform/fabric/fabric.h"

namespace perdura::rpc {

// Connects to a server, which gets `hello` and answers in the connection's private data. Throws
// PlatformError, which calls the server `who`, if it refuses or cannot be reached.
Task<fabric::Connection> connect(fabric::Endpoint& endpoint, std::string_view who,
                                 fabric::Address server, fabric::QueuePairOptions options,
                                 std::span<const std::byte> hello);

}  // namespace perdura::rpc
