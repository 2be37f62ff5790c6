// The kind of thing that a path names, and error messages for a path of the wrong kind. A path that
// may not be examined, such as one in a folder that this user may not enter, must not be treated as
// one that does not exist: the program would continue with a wrong assumption. So all questions to
// a file system pass through here, which a test checks (tests/scripts/one_place_test.sh).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace perdura {

// `unknown`: the operating system does not tell; `other`: a device, a pipe and the like. Symbolic
// links are followed.
enum class PathKind { unknown, nothing, file, folder, other };
PathKind kind_of(const std::filesystem::path& path);

// Each throws PlatformError, "FILE: cannot be examined: Permission denied", if the kind is unknown.
bool is_there(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);
bool is_file(const std::filesystem::path& path);
bool is_link(const std::filesystem::path& path);
// The contents of a folder, in no particular order; empty if the folder does not exist. Throws
// PlatformError if it cannot be read.
std::vector<std::filesystem::path> names_in(const std::filesystem::path& folder);
// The same; the problem is what the system says, also if the folder does not exist. The folder is
// closed again when this returns: the caller may have one descriptor left.
std::vector<std::filesystem::path> names_in(const std::filesystem::path& folder,
                                            std::error_code& problem);

// The message for a path that must be a folder and is not: "there is no such folder", "is a file,
// not a folder", "cannot be examined: Permission denied".
std::string not_a_folder(const std::filesystem::path& path);
// The message for a path that must be a readable file and is not: "there is no such file", "is a
// folder; give a file", "cannot be read: Permission denied".
std::string not_a_file(const std::filesystem::path& path);

}  // namespace perdura
