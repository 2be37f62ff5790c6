#pragma once

#include <string_view>

#include "services/fs/fs.h"

namespace perdura::fs::test {

// Looks up a name and holds the inode that it finds, even if others remove names meanwhile.
Task<Result<Attributes>> look_up_and_hold(Session& session, InodeNumber directory,
                                          std::string_view name);
// Holds an inode that an operation has returned; no_such_file_or_directory if it no longer exists.
Task<Result<Attributes>> hold_found(Session& session, Attributes found);

}  // namespace perdura::fs::test
