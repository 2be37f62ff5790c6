// What fails in an exploration, and in one of its runs.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "platform/platform.h"

namespace perdura::bench {

enum class FailureKind : std::uint8_t {
  power,       // of servers: what may be lost is up to the persistence model
  process,     // of servers: what they have stored survives, flushed or not, and they start again
  client,      // the process of a client, which does not come back
  connection,  // of a client with a server; both live on
};

constexpr std::string_view kFailureKinds[] = {"power", "process", "client", "connection"};
constexpr std::string_view to_string(FailureKind kind) {
  return kFailureKinds[static_cast<int>(kind)];
}

// Whether servers go down and recover. Otherwise nothing that a client was told may be lost.
constexpr bool of_servers(FailureKind kind) {
  return kind == FailureKind::power || kind == FailureKind::process;
}

// What fails at the moment of one run.
struct WhatFails {
  FailureKind kind = FailureKind::power;
  std::vector<NodeId> servers{};  // those that fail, or the one at the end of the connection
  std::uint32_t client = 0;       // that dies or loses its connection
  bool server_first = false;      // the connection breaks at the server's end
  // The servers fail once more, the same way, up to 100 us later, while they recover or while the
  // clients have connected again and go on.
  bool again = false;
};

}  // namespace perdura::bench
