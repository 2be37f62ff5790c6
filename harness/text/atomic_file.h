// Replaces a file atomically: a reader, or a crash, finds either the old text or the new one.
#pragma once

#include <filesystem>
#include <string_view>

namespace perdura::harness {

// Throws PlatformError with the path and the reason. Anything that is not a plain file, such as
// /dev/stdout, is written to directly.
void write_atomically(const std::filesystem::path& file, std::string_view text);

}  // namespace perdura::harness
