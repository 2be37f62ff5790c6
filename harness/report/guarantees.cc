#include "harness/report/guarantees.h"

#include <fmt/format.h>

#include <toml++/toml.h>

namespace perdura::report {

Expected<std::vector<GuaranteeTable>> read_guarantees(const std::filesystem::path& input) {
  const std::filesystem::path folder = input / "guarantees";
  const std::filesystem::path index = folder / "tables.toml";
  std::vector<GuaranteeTable> tables;
  if (!std::filesystem::exists(index)) return tables;
  try {
    const toml::table document = toml::parse_file(index.string());
    const toml::array* entries = document["table"].as_array();
    for (std::size_t i = 0; entries != nullptr && i < entries->size(); ++i) {
      const toml::table& entry = *entries->at(i).as_table();
      GuaranteeTable table;
      table.name = entry["name"].value_or("");
      table.title = entry["title"].value_or("");
      table.caption = entry["caption"].value_or("");
      table.verdicts = entry["verdicts"].value_or(false);
      auto cells = read_csv(folder / (table.name + ".csv"));
      if (!cells) return tl::unexpected(cells.error());
      table.cells = std::move(*cells);
      tables.push_back(std::move(table));
    }
  } catch (const toml::parse_error& error) {
    return fail(fmt::format("{}:{}: {}; run 'perdura guarantees' again", index.string(),
                            error.source().begin.line, error.description()));
  }
  return tables;
}

}  // namespace perdura::report
