#include "report/compare/configurations.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>
#include <string_view>

#include "platform/base/words.h"

namespace perdura::compare {
namespace {

using report::ResultFolder;
using Settings = std::map<std::string, std::string>;

constexpr std::string_view kNotGiven = "-";

/// Adds the entries of a table in TOML's syntax, with nested tables as dotted keys.
void flatten(const toml::table& table, const std::string& prefix, Settings& settings) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const toml::table* inner = node.as_table()) {
      flatten(*inner, name + ".", settings);
      continue;
    }
    std::ostringstream text;
    text << toml::node_view<const toml::node>(node);
    settings[name] = text.str();
  }
}

/// The keys of the experiment that determine how it is run, except those that the manifest has,
/// too, where defaults are filled in.
Settings of_experiment(const ResultFolder& folder) {
  // The folder was read, so the text is TOML.
  toml::table table = toml::parse(folder.experiment_text);
  for (const std::string_view shown_or_in_manifest :
       {"figure", "table", "description", "name", "platform", "profile", "seed", "repetitions"}) {
    table.erase(shown_or_in_manifest);
  }
  Settings settings;
  flatten(table, "", settings);
  return settings;
}

bool counts(const std::string& key, bool modelled) {
  constexpr std::array<std::string_view, 2> of_a_moment{"points_done", "sessions.0.started"};
  if (std::find(of_a_moment.begin(), of_a_moment.end(), key) != of_a_moment.end()) return false;
  if (!key.starts_with("sessions.")) return true;
  // On real platforms a sweep can only be continued on the same configuration, so the first session
  // stands for all. On `sim` the machine does not matter.
  return !modelled && key.starts_with("sessions.0.") && key != "sessions.0.command_line";
}

/// Adds a profile or site, which are TOML; returns false if the text is not.
bool add_toml(const std::string& text, const std::string& prefix, Settings& settings) {
  try {
    flatten(toml::parse(text), prefix, settings);
    return true;
  } catch (const toml::parse_error&) {
    return false;
  }
}

/// True if the manifest has the settings of all input files; manifests of earlier versions do not.
bool explains_files(const ResultFolder& folder) {
  return std::all_of(folder.workloads.begin(), folder.workloads.end(),
                     [](const report::InputFile& file) { return file.settings.has_value(); });
}

/// Input files of points are compared by their settings if `explained`, otherwise by their text.
Settings settings_of(const ResultFolder& folder, bool explained) {
  Settings settings = of_experiment(folder);
  const bool modelled = folder.from_manifest("provenance") == "modelled";
  for (const auto& [key, value] : folder.manifest) {
    if (!counts(key, modelled)) continue;
    if (key == "profile.text" && add_toml(value, "profile.", settings)) continue;
    if (key == "site.text" && add_toml(value, "site.", settings)) continue;
    if (key.starts_with("workloads.") && key.ends_with(".text")) continue;
    settings[key] = value;
  }
  for (const report::InputFile& file : folder.workloads) {
    const std::string name = "workload " + file.name;
    if (!explained) {
      settings[name] = file.text;
      continue;
    }
    for (const auto& [key, value] : *file.settings) {
      settings[fmt::format("{}: {}", name, key)] = value;
    }
  }
  return settings;
}

/// For multi-line texts, which would not fit into one line: the first lines that differ.
std::string first_line_that_differs(const Difference& difference) {
  const std::vector<std::string> first = parts_of(difference.first, '\n');
  const std::vector<std::string> second = parts_of(difference.second, '\n');
  for (std::size_t line = 0;; ++line) {
    const bool in_first = line < first.size();
    const bool in_second = line < second.size();
    if (in_first && in_second && first[line] == second[line]) continue;
    // The texts may differ only in the end of their last line.
    if (!in_first && !in_second) return fmt::format("{} (white space)", difference.key);
    const auto shown = [line](const std::vector<std::string>& lines) {
      return line < lines.size() ? fmt::format("'{}'", lines[line]) : std::string(kNotGiven);
    };
    return fmt::format("{} line {} {} / {}", difference.key, line + 1, shown(first), shown(second));
  }
}

std::vector<Difference> differences(const Settings& first, const Settings& second) {
  std::set<std::string> keys;
  for (const Settings* settings : {&first, &second}) {
    for (const auto& [key, value] : *settings) keys.insert(key);
  }
  const auto value_of = [](const Settings& settings, const std::string& key) {
    const auto found = settings.find(key);
    return found == settings.end() ? std::string(kNotGiven) : found->second;
  };
  std::vector<Difference> found;
  for (const std::string& key : keys) {
    Difference difference{key, value_of(first, key), value_of(second, key)};
    if (difference.first != difference.second) found.push_back(std::move(difference));
  }
  return found;
}

}  // namespace

std::vector<Differing> differing_configurations(const std::vector<ResultFolder>& a,
                                                const std::vector<ResultFolder>& b) {
  std::map<std::string, const ResultFolder*> firsts;  // by experiment
  std::vector<Differing> found;
  for (const auto* folders : {&a, &b}) {
    for (const ResultFolder& folder : *folders) {
      const auto [first, added] = firsts.try_emplace(folder.from_manifest("experiment"), &folder);
      if (added) continue;
      const bool explained = explains_files(*first->second) && explains_files(folder);
      auto list =
          differences(settings_of(*first->second, explained), settings_of(folder, explained));
      if (!list.empty()) found.push_back({first->second->path, folder.path, std::move(list)});
    }
  }
  return found;
}

std::string to_line(const Differing& differing) {
  std::vector<std::string> parts;
  for (const Difference& each : differing.differences) {
    const bool several = (each.first + each.second).find('\n') != std::string::npos;
    parts.push_back(several ? first_line_that_differs(each)
                            : fmt::format("{} {} / {}", each.key, each.first, each.second));
  }
  return fmt::format("{} and {} were not run alike: {}", differing.first.string(),
                     differing.second.string(), fmt::join(parts, ", "));
}

}  // namespace perdura::compare
