// Which kind of thing a path names, and error messages for a path that is not of the kind that was
// asked for. A path that may not be examined, such as one in a folder that this user may not enter,
// is not one where there is nothing: a program that takes it for that goes on with a wrong
// assumption. So everything that the programs ask a file system passes through here, which a test
// checks (tests/scripts/questions_test.sh).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace perdura {

// `unknown` is what the operating system does not say, `other` a device, a pipe and the like.
// Symbolic links are followed.
enum class PathKind { unknown, nothing, file, folder, other };
PathKind kind_of(const std::filesystem::path& path);

// Each throws PlatformError, "FILE: cannot be examined: Permission denied", if it is unknown.
bool is_there(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);
bool is_file(const std::filesystem::path& path);
bool is_link(const std::filesystem::path& path);
// All that is in a folder, in no order. Nothing is in a folder that is not there. Throws
// PlatformError if it cannot be read.
std::vector<std::filesystem::path> names_in(const std::filesystem::path& folder);

// Says of a path that must be a folder and is not: "there is no such folder", "is a file, not a
// folder", "cannot be examined: Permission denied".
std::string not_a_folder(const std::filesystem::path& path);
// Says of a path that must be a file that can be read and is not: "there is no such file", "is a
// folder; give a file", "cannot be read: Permission denied".
std::string not_a_file(const std::filesystem::path& path);

}  // namespace perdura
