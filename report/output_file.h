#pragma once

#include <filesystem>
#include <string_view>

#include "harness/schema/error.h"

namespace perdura::report {

/// Writes a file as a whole (harness/text/atomic_file.h).
/// Errors: it cannot be written, with its path and the reason; the work has failed then.
Expected<void> write_file(const std::filesystem::path& file, std::string_view text);

}  // namespace perdura::report
