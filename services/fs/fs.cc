#include "services/fs/fs.h"

namespace perdura::fs {

std::string_view to_string(FsRole role) {
  switch (role) {
    case FsRole::metadata:
      return "metadata";
    case FsRole::mirror:
      return "mirror";
    case FsRole::store:
      return "store";
  }
  return "";
}

services::SystemInfo info_of(const FsSystem& system) {
  services::SystemInfo info = system.info;
  info.chooses_method = system.cluster != nullptr && system.cluster->update.has_value();
  return info;
}

}  // namespace perdura::fs
