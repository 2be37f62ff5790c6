// What the two sides say to each other when they connect: the private data of the connection.
#pragma once

#include <cstdint>

#include "platform/fabric/types.h"

namespace perdura::persistence {

inline constexpr std::uint32_t kProtocolVersion = 2;

struct Hello {
  std::uint32_t version = kProtocolVersion;
  std::uint32_t session = 0;
  std::uint32_t method = 0;  // PersisterSetup::method_checksum
  std::uint32_t largest_a = 0;
  std::uint32_t largest_b = 0;
};
static_assert(sizeof(Hello) <= fabric::kMaxPrivateData);

struct Welcome {
  fabric::RemoteKey target;
  fabric::RemoteKey buffers;  // FLUSH and READ may name the buffer of a SEND
  std::uint64_t region_size = 0;
  std::uint64_t first_buffer = 0;  // of the session; offset in what `buffers` is the key of
  std::uint64_t sequence = 0;      // of the last message before
  std::uint32_t buffer_count = 0;
  std::uint32_t generation = 0;  // that checksums begin with; 0 if messages need none
};
static_assert(sizeof(Welcome) <= fabric::kMaxPrivateData);

// Why the responder wants none of it, and what it was set up for.
struct Rejection {
  enum class Reason : std::uint32_t { none, version, no_session, setup, busy, ending };
  Reason reason = Reason::none;
  std::uint32_t sessions = 0;
  std::uint32_t method = 0;  // PersisterSetup::method_checksum
  std::uint32_t largest_a = 0;
  std::uint32_t largest_b = 0;
};
static_assert(sizeof(Rejection) <= fabric::kMaxPrivateData);

// An acknowledgment: how many messages have arrived in the session.
using Acknowledgment = std::uint64_t;
// In place of one: the responder is about to end, and the requester should let go of it.
inline constexpr Acknowledgment kGoodbye = ~Acknowledgment{0};

}  // namespace perdura::persistence
