#include "services/objects/objects.h"

namespace perdura::objects {

std::string_view to_string(Error error) {
  switch (error) {
    case Error::not_found:
      return "not found";
    case Error::exists:
      return "exists";
    case Error::out_of_space:
      return "out of space";
    case Error::too_large:
      return "too large";
    case Error::invalid:
      return "invalid";
    case Error::no_permission:
      return "no permission";
    case Error::busy:
      return "busy";
    case Error::locked:
      return "locked";
    case Error::unsupported:
      return "unsupported";
    case Error::failed:
      return "failed";
    case Error::disconnected:
      return "disconnected";
  }
  return "unknown error";
}

}  // namespace perdura::objects
