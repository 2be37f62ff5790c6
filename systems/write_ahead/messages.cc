#include "systems/write_ahead/messages.h"

namespace perdura::systems::write_ahead {

ReplyStatus status_of(kv::Error error) {
  switch (error) {
    case kv::Error::not_found:
      return ReplyStatus::not_found;
    case kv::Error::out_of_space:
      return ReplyStatus::out_of_space;
    case kv::Error::too_large:
      return ReplyStatus::too_large;
    case kv::Error::corrupt:
      return ReplyStatus::corrupt;
    case kv::Error::disconnected:
      return ReplyStatus::disconnected;
  }
  return ReplyStatus::corrupt;
}

kv::Error error_of(ReplyStatus status) {
  switch (status) {
    case ReplyStatus::not_found:
      return kv::Error::not_found;
    case ReplyStatus::out_of_space:
      return kv::Error::out_of_space;
    case ReplyStatus::too_large:
      return kv::Error::too_large;
    case ReplyStatus::disconnected:
      return kv::Error::disconnected;
    case ReplyStatus::done:
    case ReplyStatus::corrupt:
    case ReplyStatus::stale_lap:
      break;
  }
  return kv::Error::corrupt;
}

}  // namespace perdura::systems::write_ahead
