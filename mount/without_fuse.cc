// Implements mount.h in a build without libfuse.
#include "mount/mount.h"
#include "platform/base/error.h"

namespace perdura::mount {

bool is_available() { return false; }

void serve(const fs::FsSystem&, const Source&, const MountOptions&) {
  throw UsageError(
      "this perdura was built without libfuse; install libfuse3-dev (scripts/packages) and build "
      "it again");
}

}  // namespace perdura::mount
