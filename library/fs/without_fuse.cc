// Implements mount.h in a build without libfuse.
#include "library/fs/mount.h"
#include "platform/base/error.h"

namespace perdura::fs::fuse {

bool is_available() { return false; }

void serve(const FsSystem&, const Place&, const MountOptions&) {
  throw UsageError(
      "this perdura was built without libfuse; install libfuse3-dev (scripts/packages) and build "
      "it again");
}

}  // namespace perdura::fs::fuse
