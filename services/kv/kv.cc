#include "services/kv/kv.h"

namespace perdura::kv {

std::string_view to_string(Error error) {
  switch (error) {
    case Error::not_found:
      return "not found";
    case Error::out_of_space:
      return "out of space";
    case Error::too_large:
      return "too large";
    case Error::corrupt:
      return "corrupt";
    case Error::disconnected:
      return "disconnected";
  }
  return "unknown error";
}

}  // namespace perdura::kv
