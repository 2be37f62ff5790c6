// The messages between clients and shards. A request is a SEND, and so is its reply: a client may
// take an operation for durable when it has the reply (MCAS, section 3.1.1: persistent on
// completion). Keys and small values travel in the messages; of a direct transfer the request says
// where the client's memory is, and the shard READs or WRITEs that.
//
// A shard trusts no message. One that is no request ends the connection, since it cannot be
// answered; one that cannot be carried out is answered with an error.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "platform/fabric/fabric.h"
#include "rpc/messages.h"
#include "services/kv/kv.h"
#include "services/objects/objects.h"

namespace perdura::systems::mcas {

inline constexpr std::uint32_t kProtocolVersion = 3;

// What `value` of a request or a reply holds besides values of keys, and calls, is at most so long.
inline constexpr Bytes kLongestArgument = 72;

// The private data of a connection, of the client and of the shard's answer.
struct Hello {
  std::uint32_t version = 0;
};
struct Welcome {
  std::uint32_t session = 0;
  std::uint32_t queue_depth = 0;  // most requests in flight
  std::uint64_t max_key_size = 0;
  std::uint64_t max_value_size = 0;  // of values that travel in messages

  // Of the "value" of a request or a reply, whatever it is, and of both with all that they have.
  Bytes longest_value() const { return std::max<Bytes>(max_value_size, kLongestArgument); }
  Bytes longest_request() const;
  Bytes longest_reply() const;
};
static_assert(sizeof(Welcome) <= fabric::kMaxPrivateData);

// What is the "key" of a request and the "value" behind it stands beside the kind.
enum class RequestKind : std::uint8_t {
  put,                // key, value
  get,                // key
  erase,              // key
  put_direct,         // key, Transfer
  get_direct,         // key, Transfer
  put_direct_offset,  // key, Transfer
  get_direct_offset,  // key, Transfer
  key_attributes,     // key
  pool_attributes,    //
  create_pool,        // name, PoolSize
  open_pool,          // name, PoolSize if it is created on demand
  close_pool,         //
  delete_pool,        // name
  configure_pool,     // command
  find,               // expression, Search
  statistics,         //
  invoke,             // key; Call, request
  invoke_put,         // key; Call, request, value
};

// A pool that a session has open, as the session names it. Never given twice by a shard, so one
// that was closed, or is another session's, means nothing.
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
  std::uint32_t id = 0;  // of the call, below Welcome::queue_depth
  PoolHandle pool = kNoPool;
  std::uint32_t key_length = 0;
  std::uint32_t value_length = 0;

  Bytes size() const { return sizeof(Request) + Bytes{key_length} + value_length; }
};
static_assert(sizeof(Request) == 24);

// A part of a value, and where it is, or is to be, in the client's memory.
struct Transfer {
  std::uint64_t value_offset = 0;  // of the part; 0 unless the kind has an offset
  std::uint64_t length = 0;
  std::uint64_t remote_offset = 0;
  std::uint32_t remote_key = 0;
  std::uint32_t unused = 0;
};
struct PoolSize {
  std::uint64_t bytes = 0;
};
struct Search {
  std::uint64_t position = 0;  // of the first key that may be found
  objects::Match match = objects::Match::exact;
  std::array<std::uint8_t, 7> unused{};
};
// Of an active data object.
struct Call {
  std::uint64_t value_length = 0;    // of the value that is created, if one is
  std::uint64_t request_length = 0;  // what follows the request is the value that is put
};

static_assert(sizeof(Transfer) <= kLongestArgument);
static_assert(sizeof(objects::ShardStatistics) <= kLongestArgument);

// 0, or one more than the number of the error.
using ReplyStatus = std::uint32_t;
inline constexpr ReplyStatus kDone = 0;
constexpr ReplyStatus status_of(objects::Error error) {
  return static_cast<ReplyStatus>(error) + 1;
}
// Of an operation that is not done.
constexpr objects::Error error_of(ReplyStatus status) {
  return static_cast<objects::Error>(status - 1);
}

// What the operation yields follows: a value, its length (get_direct, key_attributes: 8 bytes), a
// PoolHandle, objects::PoolAttributes, objects::ShardStatistics, the position of a key, 8 bytes,
// and the key (find), or the answers as ado/codec.h encodes a list (invoke, invoke_put). Behind a
// reply that is not `done` it is a text for people, of any length: why.
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
