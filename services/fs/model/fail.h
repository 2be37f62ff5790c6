#pragma once

#include "services/fs/fs.h"

namespace perdura::fs {

inline tl::unexpected<std::errc> fail(std::errc error) { return tl::unexpected(error); }

}  // namespace perdura::fs
