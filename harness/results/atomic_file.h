// Writing a file so that a reader, or a crash, meets the old text or the new one and nothing
// between.
#pragma once

#include <filesystem>
#include <string_view>

namespace perdura::harness {

// Throws PlatformError with the path and the reason.
void write_atomically(const std::filesystem::path& file, std::string_view text);

}  // namespace perdura::harness
