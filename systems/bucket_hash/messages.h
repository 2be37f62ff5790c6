// The messages between clients and servers of the hash indexes ("Consistent RDMA-Friendly Hashing
// on Remote Persistent Memory", section II). A client writes its request into its lane's slot in
// the server's memory by WRITE_WITH_IMM; the immediate is the number of the lane. The server SENDs
// a reply.
#pragma once

#include <array>
#include <cstdint>

#include "platform/fabric/fabric.h"
#include "platform/fabric/needs.h"
#include "services/kv/kv.h"
#include "systems/bucket_hash/slot.h"

namespace perdura::systems::bucket_hash {

inline constexpr fabric::DeviceNeeds kDeviceNeeds{.write_with_immediate = true};
inline constexpr std::uint32_t kProtocolVersion = 1;

struct Hello {
  std::uint32_t version = 0;
};

// The information about the index for a connecting client; each index encodes its own parameters.
using Plan = std::array<std::uint64_t, 3>;

struct Welcome {
  std::uint32_t session = 0;
  std::uint32_t lanes = 0;         // maximum number of requests in flight
  std::uint32_t requests_key = 0;  // remote key of the session's request slots, one per lane
  std::uint32_t index_key = 0;
  std::uint64_t requests_offset = 0;
  Plan plan{};
};
static_assert(sizeof(Welcome) <= fabric::kMaxPrivateData);

enum class RequestKind : std::uint64_t { put, erase };

struct Request {
  RequestKind kind = RequestKind::put;
  Slot item;  // an erase uses its key only
};
static_assert(sizeof(Request) == 40);
inline constexpr Bytes kRequestRoom = kCacheLine;

enum class ReplyStatus : std::uint32_t { done, not_found, out_of_space };

struct Reply {
  std::uint32_t lane = 0;
  ReplyStatus status = ReplyStatus::done;
};
static_assert(sizeof(Reply) == 8);
inline constexpr Bytes kReplyRoom = kCacheLine;

}  // namespace perdura::systems::bucket_hash
