// The specification of the service as a system that can be mounted. Nothing of it is persistent: a
// mount begins with an empty file system.
#pragma once

#include "services/fs/fs.h"

namespace perdura::test {

const fs::FsSystem& model_system();

}  // namespace perdura::test
