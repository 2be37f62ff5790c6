// The messages between clients and shards. A request is a SEND, and so is its reply: a client may
// take an operation for durable when it has the reply (MCAS, section 3.1.1: persistent on
// completion). Key and value travel in the messages, as for all operations but the direct
// transfers.
#pragma once

#include <cstdint>

#include "platform/fabric/fabric.h"
#include "services/kv/kv.h"

namespace perdura::systems::mcas {

inline constexpr std::uint32_t kProtocolVersion = 1;

// The private data of a connection, of the client and of the shard's answer.
struct Hello {
  std::uint32_t version = 0;
};
struct Welcome {
  std::uint32_t session = 0;
  std::uint32_t queue_depth = 0;  // most requests in flight
  std::uint64_t max_key_size = 0;
  std::uint64_t max_value_size = 0;
};
static_assert(sizeof(Welcome) <= fabric::kMaxPrivateData);

enum class RequestKind : std::uint32_t { put, get, erase };

// The key follows, and behind it the value of a put.
struct Request {
  RequestKind kind = RequestKind::get;
  std::uint32_t id = 0;  // of the call, below Welcome::queue_depth
  std::uint32_t key_length = 0;
  std::uint32_t value_length = 0;

  Bytes size() const { return sizeof(Request) + key_length + value_length; }
};
static_assert(sizeof(Request) == 16);

enum class ReplyStatus : std::uint32_t { done, not_found, out_of_space };

// The value follows, if this is the reply to a get.
struct Reply {
  std::uint32_t id = 0;
  ReplyStatus status = ReplyStatus::done;
  std::uint32_t value_length = 0;
  std::uint32_t padding = 0;

  Bytes size() const { return sizeof(Reply) + value_length; }
};
static_assert(sizeof(Reply) == 16);

}  // namespace perdura::systems::mcas
