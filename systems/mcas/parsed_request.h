// A request as parsed by a shard, which trusts no message (protocol/messages.h).
#pragma once

#include <optional>
#include <span>

#include "systems/mcas/protocol/messages.h"

namespace perdura::systems::mcas {

struct ParsedRequest {
  Request header;
  Key key;
  Value value;

  // True if the request has everything that its kind needs, nothing else, and no more than the
  // limits allow.
  bool is_valid(const Welcome& limits) const;
  // True if it is about an open pool.
  bool has_pool() const;
  // True if it changes that pool.
  bool changes() const;
  // The parts of a valid invocation: its request, and the value that it puts.
  Value call_request() const { return value.subspan(sizeof(Call), call().request_length); }
  Value call_value() const { return value.subspan(sizeof(Call) + call().request_length); }
  Call call() const { return rpc::read_message<Call>(value); }

 private:
  bool is_valid_call(const Welcome& limits) const;
};
// Returns nothing if the message is not a request that could be answered.
std::optional<ParsedRequest> parse(std::span<const std::byte> message, const Welcome& limits);

}  // namespace perdura::systems::mcas
