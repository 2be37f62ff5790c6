#include "explore/explored.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "methods/method.h"

namespace perdura::explore {

using services::GuaranteeLevel;

extern const std::string_view explored_table;
extern const std::string_view explored_table_revision;

namespace {

// The keys are the row and the column.
using Table = std::map<std::string, std::map<std::string, ExploredCell>>;

std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

Table read_table() {
  Table table;
  std::vector<std::string> header;
  for (std::string_view rest = explored_table; !rest.empty();) {
    const std::vector<std::string> cells = cells_of(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(std::min(rest.size(), rest.find('\n') + 1));
    if (header.empty()) {
      header = cells;
      continue;
    }
    auto& row = table[cells.front()];
    for (std::size_t i = 1; i < cells.size() && i < header.size(); ++i) {
      if (const auto level = services::guarantee_of_word(cells[i])) {
        row[header[i]] = {level, ""};
      } else if (cells[i].starts_with(kRefused)) {
        row[header[i]] = {std::nullopt, cells[i].substr(kRefused.size())};
      }
    }
  }
  return table;
}

}  // namespace

std::string_view explored_revision() { return explored_table_revision; }

std::vector<ExploredSetting> explored_settings(const services::SystemInfo& system) {
  std::vector<ExploredSetting> settings{{"", {}}};
  for (const services::Setting& setting : system.changes_guarantee) {
    const ParameterValue value = setting.value.value();
    // A parameter that is a word is told by its value, too.
    std::string name(setting.name);
    if (value.is_text()) name += fmt::format(" = {}", value.text());
    settings.push_back(
        {std::move(name), {{std::string(setting.name), value}}, false, setting.keeps_nothing});
  }
  if (system.chooses_method) settings.push_back({"persistence = correct", {}, true});
  return settings;
}

ExploredSetting given_setting(const services::SystemInfo& system, const GivenParameters& parameters,
                              bool correct) {
  for (ExploredSetting& setting : explored_settings(system)) {
    if (setting.parameters == parameters && setting.correct == correct) return std::move(setting);
  }
  std::vector<std::string> names;
  for (const auto& [name, value] : parameters) {
    names.push_back(fmt::format("{} = {}", name, value.to_text()));
  }
  if (correct) names.emplace_back("persistence = correct");
  return {fmt::format("{}", fmt::join(names, ", ")), parameters, correct};
}

std::string explored_name(const services::SystemInfo& system, const ExploredSetting& setting) {
  return fmt::format("{}{}{}", system.name, setting.name.empty() ? "" : ", ", setting.name);
}

std::string explored_name(const pmem::PersistenceModel& model) {
  return fmt::format("{} {}{}", to_string(model.domain), model.ddio ? "ddio" : "no-ddio",
                     model.transport == pmem::Transport::iwarp ? " iwarp" : "");
}

std::vector<pmem::PersistenceModel> explored_models() {
  std::vector<pmem::PersistenceModel> models;
  for (const methods::Configuration& configuration :
       methods::configurations(methods::StatedConfiguration{})) {
    if (models.empty() || !(models.back() == configuration.model)) {
      models.push_back(configuration.model);
    }
  }
  return models;
}

std::optional<ExploredCell> explored_cell(const services::SystemInfo& system,
                                          const GivenParameters& parameters, bool correct,
                                          const pmem::PersistenceModel& model) {
  static const Table table = read_table();
  std::optional<ExploredSetting> best;
  for (const ExploredSetting& setting : explored_settings(system)) {
    const bool has_all = std::all_of(
        setting.parameters.begin(), setting.parameters.end(), [&](const auto& parameter) {
          const auto given = parameters.find(parameter.first);
          return given != parameters.end() && given->second == parameter.second;
        });
    if (setting.correct != correct || !has_all) continue;
    if (!best || setting.parameters.size() > best->parameters.size()) best = setting;
  }
  if (!best) return std::nullopt;
  const auto row = table.find(explored_name(system, *best));
  if (row == table.end()) return std::nullopt;
  const auto cell = row->second.find(explored_name(model));
  if (cell == row->second.end()) return std::nullopt;
  return cell->second;
}

std::optional<GuaranteeLevel> explored_level(const services::SystemInfo& system,
                                             const GivenParameters& parameters, bool correct,
                                             std::span<const pmem::PersistenceModel> servers) {
  std::optional<GuaranteeLevel> weakest;
  for (const pmem::PersistenceModel& server : servers) {
    const auto cell = explored_cell(system, parameters, correct, server);
    if (!cell) return std::nullopt;
    if (cell->level) weakest = std::min(weakest.value_or(*cell->level), *cell->level);
  }
  return weakest;
}

}  // namespace perdura::explore
