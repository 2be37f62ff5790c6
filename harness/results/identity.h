// The identity of a result folder: what all of its points have in common, so that the folder holds
// the results of one configuration and one build. A sweep can be continued only if its identity is
// unchanged.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace perdura::harness {

// Names and values, such as ("profile erda-connectx3", that file's text); the order matters in
// comparisons.
using Identity = std::vector<std::pair<std::string, std::string>>;

// JSON; bytes that are not UTF-8 are replaced.
std::string to_text(const Identity& identity);
// Throws UsageError, naming `file`, if the text is not an identity.
Identity identity_of_text(const std::string& text, const std::filesystem::path& file);

// A difference in words: "line 7 of experiment 'operations = 300'" and "'operations = 400'", or
// "build b1" and "build b2".
struct Difference {
  std::string one;
  std::string other;
};
// The first difference, if there is one.
std::optional<Difference> first_difference(const Identity& one, const Identity& other);

// Throws UsageError with the first difference, and advice, if the folder was begun with another
// identity.
void check_same(const std::filesystem::path& folder, const Identity& begun, const Identity& now);

// The name of this process's build: version, revision, compiler. If the sources had uncommitted
// changes, which have no name, it includes a hash of the executable.
std::string build_name();

}  // namespace perdura::harness
