// Error messages for a path that is not of the kind that was asked for.
#pragma once

#include <filesystem>
#include <string_view>

namespace perdura::harness {

// Of a path that must be a folder and is not: "there is no such folder", "is a file, not a folder".
std::string_view not_a_folder(const std::filesystem::path& path);
// Of a path that must be a file and is not: "there is no such file", "is a folder; give a file".
std::string_view not_a_file(const std::filesystem::path& path);

}  // namespace perdura::harness
