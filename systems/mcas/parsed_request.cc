#include "systems/mcas/parsed_request.h"

#include <algorithm>

#include "systems/mcas/ado/messages.h"
#include "systems/mcas/allocations.h"

namespace perdura::systems::mcas {

std::optional<ParsedRequest> parse(std::span<const std::byte> message, const Welcome& limits) {
  if (message.size() < sizeof(Request)) return std::nullopt;
  ParsedRequest request{rpc::read_message<Request>(message), {}, {}};
  const Request& header = request.header;
  if (header.id >= limits.queue_depth || message.size() != header.size()) return std::nullopt;
  request.key = message.subspan(sizeof header, header.key_length);
  request.value = message.subspan(sizeof header + header.key_length);
  return request;
}

bool ParsedRequest::is_valid(const Welcome& limits) const {
  const std::uint8_t flags = header.flags;
  const bool has_key = !key.empty() && key.size() <= limits.max_key_size && !is_allocation(key);
  switch (header.kind) {
    case RequestKind::put:
      return has_key && value.size() <= limits.max_value_size && (flags & ~kNoOverwrite) == 0;
    case RequestKind::put_direct:
      return has_key && value.size() == sizeof(Transfer) && (flags & ~kNoOverwrite) == 0;
    case RequestKind::get_direct:
    case RequestKind::put_direct_offset:
    case RequestKind::get_direct_offset:
      return has_key && value.size() == sizeof(Transfer) && flags == 0;
    case RequestKind::get:
    case RequestKind::erase:
    case RequestKind::key_attributes:
      return has_key && value.empty() && flags == 0;
    case RequestKind::create_pool:
      return has_key && value.size() == sizeof(PoolSize) &&
             (flags & ~(kCreateOnly | kReadOnly)) == 0;
    case RequestKind::open_pool:
      return has_key && (value.empty() || value.size() == sizeof(PoolSize)) &&
             (flags & ~(kCreateOnDemand | kReadOnly)) == 0;
    case RequestKind::delete_pool:
      return has_key && value.empty() && flags == 0;
    case RequestKind::configure_pool:
      return has_key && value.empty() && flags == 0;
    case RequestKind::find:
      return key.size() <= limits.max_key_size && value.size() == sizeof(Search) && flags == 0;
    case RequestKind::pool_attributes:
    case RequestKind::close_pool:
    case RequestKind::statistics:
      return key.empty() && value.empty() && flags == 0;
    case RequestKind::invoke:
      return has_key && is_valid_call(limits) && call_value().empty() &&
             (flags & ~(kCreateOnly | kCreateOnDemand | kReadOnly | kZeroNewValue)) == 0 &&
             ((flags & kReadOnly) == 0 || flags == kReadOnly);
    case RequestKind::invoke_put:
      return has_key && is_valid_call(limits) &&
             (flags &
              ~(kNoOverwrite | kCreateOnly | kCreateOnDemand | kDetached | kZeroNewValue)) == 0;
  }
  return false;
}

// Only the shard may report the operations of other clients to plugins, so a client's request must
// not look like a signal.
bool ParsedRequest::is_valid_call(const Welcome& limits) const {
  if (value.size() < sizeof(Call) || value.size() > limits.longest_value()) return false;
  if (call().request_length > value.size() - sizeof(Call)) return false;
  const auto prefix = std::as_bytes(std::span(ado::kSignalPrefix));
  const Value request = call_request();
  return !std::equal(
      prefix.begin(), prefix.end(), request.begin(),
      request.begin() + static_cast<std::ptrdiff_t>(std::min(prefix.size(), request.size())));
}

bool ParsedRequest::has_pool() const {
  switch (header.kind) {
    case RequestKind::create_pool:
    case RequestKind::open_pool:
    case RequestKind::delete_pool:
    case RequestKind::statistics:
      return false;
    default:
      return true;
  }
}

bool ParsedRequest::changes() const {
  switch (header.kind) {
    case RequestKind::put:
    case RequestKind::put_direct:
    case RequestKind::put_direct_offset:
    case RequestKind::erase:
    case RequestKind::configure_pool:
    case RequestKind::invoke_put:
      return true;
    case RequestKind::invoke:
      return (header.flags & kReadOnly) == 0;
    default:
      return false;
  }
}

}  // namespace perdura::systems::mcas
