// The kinds of failures of an exploration, and the failure of one of its runs.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "platform/platform.h"

namespace perdura::explore {

enum class FailureKind : std::uint8_t {
  power,    // the power of servers: what may be lost is up to the persistence model
  process,  // servers' processes: what they stored survives, flushed or not, and they start again
  client,   // the process of a client, which does not come back
  connection,  // the connection of a client with a server; both live on
};

constexpr std::string_view kFailureKinds[] = {"power", "process", "client", "connection"};
constexpr std::string_view to_string(FailureKind kind) {
  return kFailureKinds[static_cast<int>(kind)];
}

// True if servers go down and recover. Otherwise nothing that a client was told may be lost.
constexpr bool of_servers(FailureKind kind) {
  return kind == FailureKind::power || kind == FailureKind::process;
}

// The failure of one run.
struct WhatFails {
  FailureKind kind = FailureKind::power;
  std::vector<NodeId> servers{};  // those that fail, or the one at the end of the connection
  std::uint32_t client = 0;       // that dies or loses its connection
  bool server_first = false;      // the connection breaks at the server's end
};

}  // namespace perdura::explore
