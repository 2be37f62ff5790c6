#include "services/memory/memory.h"

namespace perdura::services {

std::string_view to_string(SyncError error) {
  switch (error) {
    case SyncError::outside:
      return "outside the region";
    case SyncError::too_large:
      return "too large";
    case SyncError::replaced:
      return "another node is the primary";
  }
  return "";
}

std::string_view to_string(MemoryRole role) {
  switch (role) {
    case MemoryRole::primary:
      return "primary";
    case MemoryRole::mirror:
      return "mirror";
    case MemoryRole::backup:
      return "backup";
  }
  return "";
}

SystemInfo info_of(const MemorySystem& system) {
  SystemInfo info = system.info;
  info.chooses_method = system.update.has_value();
  return info;
}

}  // namespace perdura::services
