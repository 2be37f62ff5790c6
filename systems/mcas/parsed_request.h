// A request as a shard reads it, which trusts no message (protocol/messages.h).
#pragma once

#include <optional>
#include <span>

#include "systems/mcas/protocol/messages.h"

namespace perdura::systems::mcas {

struct ParsedRequest {
  Request header;
  Key key;
  Value value;

  // Whether it has what its kind needs, nothing else, and no more than the limits allow.
  bool is_valid(const Welcome& limits) const;
  // Whether it is about a pool that is open.
  bool has_pool() const;
  // Whether it changes that.
  bool changes() const;
  // Of an invocation that is valid: the request, and the value that is put.
  Value call_request() const { return value.subspan(sizeof(Call), call().request_length); }
  Value call_value() const { return value.subspan(sizeof(Call) + call().request_length); }
  Call call() const { return rpc::read_message<Call>(value); }

 private:
  bool is_valid_call(const Welcome& limits) const;
};
// Nothing if the message is no request that could be answered.
std::optional<ParsedRequest> parse(std::span<const std::byte> message, const Welcome& limits);

}  // namespace perdura::systems::mcas
