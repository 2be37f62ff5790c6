// Reads a whole file with few system calls, fast enough for tables of a hundred megabytes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace perdura::harness {

// The bytes of the file; nullopt if it cannot be opened or read (such as a folder).
std::optional<std::string> read_whole(const std::filesystem::path& file);

// The same, but "" if there is no file. Throws PlatformError, "FILE: cannot be read: Permission
// denied", if the file exists and cannot be read.
std::string read_if_there(const std::filesystem::path& file);

}  // namespace perdura::harness
