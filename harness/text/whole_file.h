// Reads a file as a whole, with few calls of the operating system: tables of a hundred megabytes
// are read so.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace perdura::harness {

// The bytes of the file; nothing if it cannot be opened or read (a folder, for one).
std::optional<std::string> read_whole(const std::filesystem::path& file);

// The same, and no bytes if there is no file. Throws PlatformError, "FILE: cannot be read:
// Permission denied", if there is one that cannot be read.
std::string read_if_there(const std::filesystem::path& file);

}  // namespace perdura::harness
