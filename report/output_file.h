#pragma once

#include <filesystem>
#include <string_view>

#include "harness/schema/error.h"

namespace perdura::report {

/// Writes a whole file atomically (harness/text/atomic_file.h). Errors: it cannot be written; the
/// message has its path and the reason, and work_failed is set.
schema::Expected<void> write_file(const std::filesystem::path& file, std::string_view text);

}  // namespace perdura::report
