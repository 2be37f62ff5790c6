// The private data that the two sides exchange when they connect.
#pragma once

#include <cstdint>

#include "methods/method.h"
#include "platform/fabric/types.h"

namespace perdura::methods {

inline constexpr std::uint32_t kProtocolVersion = 3;

struct Hello {
  std::uint32_t version = kProtocolVersion;
  std::uint32_t session = 0;
  std::uint32_t method = 0;  // PersisterSetup::method_checksum
  std::uint32_t largest_a = 0;
  std::uint32_t largest_b = 0;
  Role role = Role::writer;
};
static_assert(sizeof(Hello) <= fabric::kMaxPrivateData);

struct Welcome {
  fabric::RemoteKey target;
  fabric::RemoteKey buffers;  // so that FLUSH and READ can name the buffer of a SEND
  std::uint64_t region_size = 0;
  std::uint64_t first_buffer = 0;  // the session's; an offset in the memory of `buffers`
  std::uint64_t sequence = 0;      // sequence number of the last message of the previous connection
  std::uint32_t buffer_count = 0;
  std::uint32_t generation = 0;  // seed of the messages' checksums; 0 if they have none
};
static_assert(sizeof(Welcome) <= fabric::kMaxPrivateData);

// The reason why the responder rejects a connection, and the responder's setup.
struct Rejection {
  enum class Reason : std::uint32_t { none, version, no_session, setup, busy, ending };
  Reason reason = Reason::none;
  std::uint32_t sessions = 0;
  std::uint32_t method = 0;  // PersisterSetup::method_checksum
  std::uint32_t largest_a = 0;
  std::uint32_t largest_b = 0;
};
static_assert(sizeof(Rejection) <= fabric::kMaxPrivateData);

// An acknowledgment: the number of messages that have arrived in the session.
using Acknowledgment = std::uint64_t;
// Sent instead of an acknowledgment when the responder is about to end: the requester should
// disconnect.
inline constexpr Acknowledgment kGoodbye = ~Acknowledgment{0};

}  // namespace perdura::methods
