// What the points of one result folder have in common, so that it holds the results of one
// configuration and one build: a sweep is continued only where all of it is as it was.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace perdura::harness {

// Names and values, such as ("profile erda-connectx3", the text of that file); compared in their
// order.
using Identity = std::vector<std::pair<std::string, std::string>>;

// JSON, in which bytes that are not UTF-8 are replaced.
std::string to_text(const Identity& identity);
// Throws UsageError, naming `file`, if the text is not an identity.
Identity identity_of_text(const std::string& text, const std::filesystem::path& file);

// In words: "line 7 of experiment 'operations = 300'" and "'operations = 400'", or "build b1" and
// "build b2".
struct Difference {
  std::string one;
  std::string other;
};
// The first one, if any.
std::optional<Difference> first_difference(const Identity& one, const Identity& other);

// Throws UsageError with the first difference, and what to do, if the folder was begun with another
// one.
void check_same(const std::filesystem::path& folder, const Identity& begun, const Identity& now);

// Of what this process runs: version, revision, compiler. Uncommitted changes have no name, so with
// them the executable's own bytes count.
std::string build_name();

}  // namespace perdura::harness
