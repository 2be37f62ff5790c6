#include "systems/write_ahead/messages.h"

namespace perdura::systems::write_ahead {

ReplyStatus status_of(Error error) {
  switch (error) {
    case Error::not_found:
      return ReplyStatus::not_found;
    case Error::out_of_space:
      return ReplyStatus::out_of_space;
    case Error::too_large:
      return ReplyStatus::too_large;
    case Error::corrupt:
      return ReplyStatus::corrupt;
    case Error::disconnected:
      return ReplyStatus::disconnected;
  }
  return ReplyStatus::corrupt;
}

Error error_of(ReplyStatus status) {
  switch (status) {
    case ReplyStatus::not_found:
      return Error::not_found;
    case ReplyStatus::out_of_space:
      return Error::out_of_space;
    case ReplyStatus::too_large:
      return Error::too_large;
    case ReplyStatus::disconnected:
      return Error::disconnected;
    case ReplyStatus::done:
    case ReplyStatus::corrupt:
    case ReplyStatus::stale_lap:
      break;
  }
  return Error::corrupt;
}

}  // namespace perdura::systems::write_ahead
