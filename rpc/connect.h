// Establishes the connection of a client to its server.
#pragma once

#include <span>
#include <string_view>

#include "platform/fabric/fabric.h"

namespace perdura::rpc {

// Connects to a server, which receives `hello` and answers in the connection's private data. Throws
// PlatformError if the server refuses or cannot be reached; the message calls the server `who`.
Task<fabric::Connection> connect(fabric::Endpoint& endpoint, std::string_view who,
                                 fabric::Address server, fabric::QueuePairOptions options,
                                 std::span<const std::byte> hello);

}  // namespace perdura::rpc
