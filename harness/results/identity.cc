#include "harness/results/identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "harness/program/build_info.h"
#include "harness/results/hash.h"
#include "harness/text/whole_file.h"
#include "platform/base/error.h"
#include "platform/base/json.h"
#include "platform/base/words.h"

namespace perdura::harness {
namespace {

std::string hash_of_executable() {
  return fmt::format("{:016x}", hash_of(read_whole("/proc/self/exe").value_or("")));
}

Difference difference_of_texts(const std::string& name, const std::string& one,
                               const std::string& other) {
  // With an end of line after each, two different texts always have a line that differs.
  const std::vector<std::string> lines = parts_of(one + '\n', '\n');
  const std::vector<std::string> other_lines = parts_of(other + '\n', '\n');
  if (lines.size() == 1 && other_lines.size() == 1) {
    return {fmt::format("{} {}", name, one), fmt::format("{} {}", name, other)};
  }
  const auto at = static_cast<std::size_t>(
      std::mismatch(lines.begin(), lines.end(), other_lines.begin(), other_lines.end()).first -
      lines.begin());
  const auto quoted = [at](const std::vector<std::string>& text) {
    return at < text.size() ? fmt::format("'{}'", text[at]) : std::string("missing");
  };
  return {fmt::format("line {} of {} {}", at + 1, name, quoted(lines)), quoted(other_lines)};
}

}  // namespace

std::string to_text(const Identity& identity) { return Json(identity).dump(); }

Identity identity_of_text(const std::string& text, const std::filesystem::path& file) {
  try {
    return Json::parse(text).get<Identity>();
  } catch (const JsonError&) {
    throw UsageError(
        fmt::format("{}: does not begin with a configuration; another version of perdura wrote it: "
                    "run the experiment again in a new folder",
                    file.string()));
  }
}

std::optional<Difference> first_difference(const Identity& one, const Identity& other) {
  const std::size_t longer = std::max(one.size(), other.size());
  for (std::size_t i = 0; i < longer; ++i) {
    const auto part = [i](const Identity& identity) {
      return i < identity.size() ? identity[i] : Identity::value_type{"nothing more", ""};
    };
    const auto [name, text] = part(one);
    const auto [other_name, other_text] = part(other);
    if (name != other_name) return Difference{name, other_name};
    if (text != other_text) return difference_of_texts(name, text, other_text);
  }
  return std::nullopt;
}

void check_same(const std::filesystem::path& folder, const Identity& begun, const Identity& now) {
  const auto difference = first_difference(begun, now);
  if (!difference) return;
  throw UsageError(fmt::format(
      "--continue {}: begun with {}, now it is {}; a folder holds the results of one configuration "
      "and one build: restore that, or run the experiment again in a new folder",
      folder.string(), difference->one, difference->other));
}

std::string build_name() {
  const BuildInfo& build = build_info();
  const bool named = !build.git_dirty && build.git_revision != "unknown";
  return fmt::format("{} {} {} {}{}", build.version, build.git_revision, build.compiler,
                     build.build_type,
                     named ? "" : fmt::format(" with changes {}", hash_of_executable()));
}

}  // namespace perdura::harness
