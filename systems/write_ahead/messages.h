// What clients and servers of the two baselines say to each other.
#pragma once

#include <cstdint>

#include "platform/base/units.h"
#include "services/kv/kv.h"

namespace perdura::systems::write_ahead {

// Private data of a connection: what the client wants it for, and what the server answers.
enum class Role : std::uint32_t { requests, log };

struct Hello {
  std::uint32_t version = 0;
  Role role = Role::requests;
  std::uint32_t session = 0;  // as the server answered before, for Role::log
  std::uint64_t epoch = 0;
};

struct Welcome {
  std::uint32_t session = 0;
  std::uint32_t queue_depth = 0;  // requests under way at once
  std::uint32_t log_window = 0;   // SENDs to the log under way at once
  std::uint32_t key_size = 0;
  std::uint32_t value_size = 0;
  std::uint32_t max_key_size = 0;
  std::uint32_t max_value_size = 0;
  std::uint32_t log_key = 0;  // remote key of the log
  std::uint64_t log_slots = 0;
  std::uint64_t position = 0;  // of the log's tail
  std::uint64_t epoch = 0;     // no other session has the same number and epoch
};
static_assert(sizeof(Welcome) <= fabric::kMaxPrivateData);

inline constexpr std::uint32_t kProtocolVersion = 2;

enum class RequestKind : std::uint32_t {
  get,
  erase,
  reserve,
  persist,  // the record in a slot of the log, which stands in place of the value's length
};

// Followed by the key.
struct Request {
  RequestKind kind = RequestKind::get;
  std::uint32_t id = 0;  // the client's name for the operation
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
  stale_lap,  // a record for the log was not sealed for the slot in which it landed
};
ReplyStatus status_of(Error error);
Error error_of(ReplyStatus status);

// Followed by the value of a get.
struct Reply {
  std::uint64_t position = 0;  // of the slot reserved; else of the log's tail
  std::uint32_t id = 0;
  ReplyStatus status = ReplyStatus::done;
  std::uint32_t value_length = 0;
  std::uint32_t padding = 0;
};
static_assert(sizeof(Reply) == 24);

constexpr Bytes request_size(Bytes key_length) { return sizeof(Request) + key_length; }
constexpr Bytes reply_size(Bytes value_length) { return sizeof(Reply) + value_length; }

}  // namespace perdura::systems::write_ahead
