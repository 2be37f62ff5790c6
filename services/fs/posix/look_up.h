#pragma once

#include <string_view>

#include "services/fs/fs.h"

namespace perdura::fs {

// look_up(), and holds what it finds, though others may remove it meanwhile.
Task<Result<Attributes>> look_up_and_hold(Session& session, InodeNumber directory,
                                          std::string_view name);
// Holds what an operation has returned before; no_such_file_or_directory if it exists no more.
Task<Result<Attributes>> hold_found(Session& session, Attributes found);

}  // namespace perdura::fs
