// The messages between clients and shards. A request is a SEND, and so is its reply. When the reply
// has arrived the operation is durable (MCAS, section 3.1.1: persistent on completion). Keys and
// small values travel in the messages; the request of a direct transfer has the address of the
// client's memory, which the shard READs or WRITEs.
//
// A shard trusts no message. A message that is not a request ends the connection, since it cannot
// be answered; a request that cannot be carried out is answered with an error.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "platform/fabric/fabric.h"
#include "rpc/messages.h"
#include "services/objects/objects.h"

namespace perdura::systems::mcas {

using objects::Key;
using objects::Value;

inline constexpr std::uint32_t kProtocolVersion = 3;

// The most bytes of the `value` of a request or a reply, other than values of keys and calls.
inline constexpr Bytes kLongestArgument = 72;

// The private data of a connection: the client's, and that of the shard's answer.
struct Hello {
  std::uint32_t version = 0;
};
struct Welcome {
  std::uint32_t session = 0;
  std::uint32_t queue_depth = 0;  // most requests in flight
  std::uint64_t max_key_size = 0;
  std::uint64_t max_value_size = 0;  // the limit for values that travel in messages

  // The longest `value` of a request or a reply, of whatever kind, and the longest whole messages.
  Bytes longest_value() const { return std::max<Bytes>(max_value_size, kLongestArgument); }
  Bytes longest_request() const;
  Bytes longest_reply() const;
};
static_assert(sizeof(Welcome) <= fabric::kMaxPrivateData);

// The comments list the "key" of a request and the "value" that follows it.
enum class RequestKind : std::uint8_t {
  put,                // key, value
  get,                // key
  erase,              // key
  put_direct,         // key, Transfer
  get_direct,         // key, Transfer
  put_direct_offset,  // key, Transfer
  get_direct_offset,  // key, Transfer
  key_attributes,     // key
  pool_attributes,
  create_pool,  // name, PoolSize
  open_pool,    // name, PoolSize if it is created on demand
  close_pool,
  delete_pool,     // name
  configure_pool,  // command
  find,            // expression, Search
  statistics,
  invoke,      // key; Call, request
  invoke_put,  // key; Call, request, value
};

// A pool that a session has open. A shard gives each handle only once, so one that was closed or
// belongs to another session is invalid.
using PoolHandle = std::uint64_t;
inline constexpr PoolHandle kNoPool = 0;

// Bits of Request::flags.
inline constexpr std::uint8_t kNoOverwrite = 1;     // put, put_direct, invoke_put
inline constexpr std::uint8_t kCreateOnly = 2;      // create_pool, invoke, invoke_put
inline constexpr std::uint8_t kCreateOnDemand = 4;  // open_pool, invoke, invoke_put
inline constexpr std::uint8_t kReadOnly = 8;        // create_pool, open_pool, invoke
inline constexpr std::uint8_t kDetached = 16;       // invoke_put
inline constexpr std::uint8_t kZeroNewValue = 32;   // invoke, invoke_put

struct Request {
  RequestKind kind = RequestKind::get;
  std::uint8_t flags = 0;
  std::uint16_t unused = 0;
  std::uint32_t id = 0;  // the call's; less than Welcome::queue_depth
  PoolHandle pool = kNoPool;
  std::uint32_t key_length = 0;
  std::uint32_t value_length = 0;

  Bytes size() const { return sizeof(Request) + Bytes{key_length} + value_length; }
};
static_assert(sizeof(Request) == 24);

// A part of a value, and its offset in the client's memory.
struct Transfer {
  std::uint64_t value_offset = 0;  // where the part begins; 0 unless the kind has an offset
  std::uint64_t length = 0;
  std::uint64_t remote_offset = 0;
  std::uint32_t remote_key = 0;
  std::uint32_t unused = 0;
};
struct PoolSize {
  std::uint64_t bytes = 0;
};
struct Search {
  std::uint64_t position = 0;  // the first key that may be found has at least this one
  objects::Match match = objects::Match::exact;
  std::array<std::uint8_t, 7> unused{};
};
// An invocation of an active data object.
struct Call {
  std::uint64_t value_length = 0;    // the length of the value to be created, if any
  std::uint64_t request_length = 0;  // the value that is put follows the request
};

static_assert(sizeof(Transfer) <= kLongestArgument);
static_assert(sizeof(objects::ShardStatistics) <= kLongestArgument);

// 0, or one more than the number of the error.
using ReplyStatus = std::uint32_t;
inline constexpr ReplyStatus kDone = 0;
constexpr ReplyStatus status_of(objects::Error error) {
  return static_cast<ReplyStatus>(error) + 1;
}
// The error of a status other than kDone.
constexpr objects::Error error_of(ReplyStatus status) {
  return static_cast<objects::Error>(status - 1);
}

// The result of the operation follows as the `value`: a value, its length (get_direct,
// key_attributes: 8 bytes), a PoolHandle, objects::PoolAttributes, objects::ShardStatistics, the
// position of a key (8 bytes) and the key (find), or the answers, encoded as a list by ado/codec.h
// (invoke, invoke_put). If the status is not kDone, it is the reason, a text of any length for
// people to read.
struct Reply {
  std::uint32_t id = 0;
  ReplyStatus status = kDone;
  std::uint32_t value_length = 0;
  std::uint32_t unused = 0;

  Bytes size() const { return sizeof(Reply) + value_length; }
};
static_assert(sizeof(Reply) == 16);

inline Bytes Welcome::longest_request() const {
  return sizeof(Request) + max_key_size + longest_value();
}
inline Bytes Welcome::longest_reply() const { return sizeof(Reply) + longest_value(); }

}  // namespace perdura::systems::mcas
