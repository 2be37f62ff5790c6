#include "services/log/log.h"

namespace perdura::services {

std::string_view to_string(LogError error) {
  switch (error) {
    case LogError::too_large:
      return "too large";
    case LogError::disconnected:
      break;
  }
  return "disconnected";
}

SystemInfo info_of(const LogSystem& system) {
  SystemInfo info = system.info;
  info.chooses_method = system.append.has_value();
  return info;
}

}  // namespace perdura::services
