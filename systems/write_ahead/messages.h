// The messages between clients and servers of the two baselines of the Erda paper, Redo Logging and
// Read After Write.
#pragma once

#include <cstdint>

#include "platform/base/units.h"
#include "services/kv/kv.h"

namespace perdura::systems::write_ahead {

// The private data of a connection: the client states the purpose of the connection, and the server
// answers.
enum class Role : std::uint32_t { requests, log };

struct Hello {
  std::uint32_t version = 0;
  Role role = Role::requests;
  std::uint32_t session = 0;  // the number from the server's earlier answer, if the role is `log`
  std::uint64_t epoch = 0;
};

struct Welcome {
  std::uint32_t session = 0;
  std::uint32_t queue_depth = 0;  // maximum number of requests in flight
  std::uint32_t log_window = 0;   // maximum number of SENDs to the log in flight
  std::uint32_t key_size = 0;
  std::uint32_t value_size = 0;
  std::uint32_t max_key_size = 0;
  std::uint32_t max_value_size = 0;
  std::uint32_t log_key = 0;  // remote key of the log
  std::uint64_t log_slots = 0;
  std::uint64_t position = 0;  // the log's tail
  std::uint64_t epoch = 0;     // distinguishes sessions that have the same number
};
static_assert(sizeof(Welcome) <= fabric::kMaxPrivateData);

inline constexpr std::uint32_t kProtocolVersion = 3;

enum class RequestKind : std::uint32_t {
  get,
  erase,
  reserve,
  persist,  // makes a record in the log durable; `value_length` holds its position's lower half
};

// The key follows.
struct Request {
  RequestKind kind = RequestKind::get;
  std::uint32_t id = 0;  // identifies the operation
  std::uint32_t key_length = 0;
  std::uint32_t value_length = 0;
};
static_assert(sizeof(Request) == 16);

enum class ReplyStatus : std::uint32_t {
  done,
  not_found,
  out_of_space,
  too_large,
  corrupt,
  disconnected,
  stale_lap,  // the record was sealed for another slot than the one it landed in
};
ReplyStatus status_of(kv::Error error);
kv::Error error_of(ReplyStatus status);

// The value follows if this is the reply to a get.
struct Reply {
  std::uint64_t position = 0;  // the reserved slot's position; else the log's tail
  std::uint32_t id = 0;
  ReplyStatus status = ReplyStatus::done;
  std::uint32_t value_length = 0;
  std::uint32_t padding = 0;
};
static_assert(sizeof(Reply) == 24);

constexpr Bytes request_size(Bytes key_length) { return sizeof(Request) + key_length; }
constexpr Bytes reply_size(Bytes value_length) { return sizeof(Reply) + value_length; }

}  // namespace perdura::systems::write_ahead
