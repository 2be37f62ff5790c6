#include "report/guarantees.h"

#include <fmt/format.h>

#include <toml++/toml.h>

#include <sstream>

#include "harness/schema/file_record.h"
#include "platform/base/path_kind.h"
#include "report/output_file.h"

namespace perdura::report {
namespace {

std::string csv_of(const schema::CsvTable& table) {
  std::string text;
  const auto line = [&](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      text += fmt::format("{}{}", i == 0 ? "" : ",", schema::csv_cell(cells[i]));
    }
    text += '\n';
  };
  line(table.header);
  for (const schema::CsvRow& row : table.rows) line(row.cells);
  return text;
}

}  // namespace

schema::Expected<std::vector<GuaranteeTable>> read_guarantees(const std::filesystem::path& input) {
  const std::filesystem::path folder = input / "guarantees";
  const std::filesystem::path index = folder / "tables.toml";
  std::vector<GuaranteeTable> tables;
  if (!is_there(index)) return tables;
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
      auto cells = schema::read_csv(folder / (table.name + ".csv"));
      if (!cells) return tl::unexpected(cells.error());
      table.cells = std::move(*cells);
      const auto rows = entry["rows"].value<std::int64_t>();
      const auto bytes = entry["bytes"].value<std::int64_t>();
      const auto crc32 = entry["crc32"].value<std::string>();
      if (rows && bytes && crc32) {  // folders of earlier versions do not have them
        const schema::FileRecord written{static_cast<std::uint64_t>(*rows),
                                         static_cast<std::uint64_t>(*bytes), *crc32};
        if (auto sound = schema::check_file(folder / (table.name + ".csv"), written, "tables.toml",
                                            "run 'perdura guarantees' again");
            !sound) {
          return tl::unexpected(sound.error());
        }
      }
      tables.push_back(std::move(table));
    }
  } catch (const toml::parse_error& error) {
    return schema::fail(fmt::format("{}:{}: {}; run 'perdura guarantees' again", index.string(),
                                    error.source().begin.line, error.description()));
  }
  return tables;
}

schema::Expected<void> write_guarantees(const std::filesystem::path& folder,
                                        const std::vector<GuaranteeTable>& tables) {
  toml::array entries;
  for (const GuaranteeTable& table : tables) {
    const std::string csv = csv_of(table.cells);
    const schema::FileRecord record = schema::record_of(csv);
    entries.push_back(toml::table{{"name", table.name},
                                  {"title", table.title},
                                  {"caption", table.caption},
                                  {"verdicts", table.verdicts},
                                  {"rows", static_cast<std::int64_t>(record.rows)},
                                  {"bytes", static_cast<std::int64_t>(record.bytes)},
                                  {"crc32", record.crc32}});
    auto written = write_file(folder / (table.name + ".csv"), csv);
    if (!written) return written;
  }
  std::ostringstream index;
  index << toml::table{{"table", entries}} << '\n';
  return write_file(folder / "tables.toml", index.str());
}

}  // namespace perdura::report
