#include "harness/results/identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "harness/results/build_info.h"
#include "harness/results/hash.h"
#include "platform/error.h"

namespace perdura::harness {
namespace {

std::string hash_of_executable() {
  std::ifstream input("/proc/self/exe", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(input), std::istreambuf_iterator<char>()};
  return fmt::format("{:016x}", hash_of(bytes));
}

}  // namespace

std::string to_text(const Identity& identity) { return nlohmann::json(identity).dump(); }

Identity identity_of_text(const std::string& text, const std::filesystem::path& file) {
  try {
    return nlohmann::json::parse(text).get<Identity>();
  } catch (const nlohmann::json::exception&) {
    throw UsageError(
        fmt::format("{}: does not begin with a configuration; another version of perdura wrote it: "
                    "run the experiment again in a new folder",
                    file.string()));
  }
}

void check_same(const std::filesystem::path& folder, const Identity& begun, const Identity& now) {
  const std::size_t longer = std::max(begun.size(), now.size());
  for (std::size_t i = 0; i < longer; ++i) {
    const auto part = [i](const Identity& identity) {
      return i < identity.size() ? identity[i] : Identity::value_type{"nothing more", ""};
    };
    if (part(begun) == part(now)) continue;
    const auto [old_name, old_value] = part(begun);
    const auto [name, value] = part(now);
    throw UsageError(fmt::format(
        "--continue {}: begun with {} {}, now it is {} {}; a folder holds the results of one "
        "configuration and one build: restore that, or run the experiment again in a new folder",
        folder.string(), old_name, old_value, name, value));
  }
}

std::string build_name() {
  const BuildInfo& build = build_info();
  const bool named = !build.git_dirty && build.git_revision != "unknown";
  return fmt::format("{} {} {} {}{}", build.version, build.git_revision, build.compiler,
                     build.build_type,
                     named ? "" : fmt::format(" with changes {}", hash_of_executable()));
}

}  // namespace perdura::harness
