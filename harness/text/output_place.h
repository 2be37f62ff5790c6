// Checks that a command will be able to write where it was told to. A command that works for
// minutes asks before it begins: otherwise a mistyped folder costs the user the whole result.
#pragma once

#include <filesystem>
#include <string>

namespace perdura::harness {

// The problem with a folder into which files are to be written, "is a file, not a folder", or "".
// The folder need not exist: then the nearest one above it that does must be writable. Nothing is
// created.
std::string problem_with_output_folder(const std::filesystem::path& folder);

// The same of a file, which write_atomically() (atomic_file.h) is to write: its folder must exist.
std::string problem_with_output_file(const std::filesystem::path& file);

}  // namespace perdura::harness
