#include "report/guarantees.h"

#include <fmt/format.h>

#include <toml++/toml.h>

#include <array>
#include <limits>
#include <sstream>

#include "harness/schema/file_record.h"
#include "platform/base/error.h"
#include "platform/base/path_kind.h"
#include "platform/base/plain_name.h"
#include "platform/base/toml_section.h"
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

// An entry of tables.toml: a table without its cells, and its file's record. Folders of earlier
// versions have no records.
struct Entry {
  GuaranteeTable table;
  std::optional<schema::FileRecord> record;
};

// Throws UsageError if the entry is not as write_guarantees() writes it.
Entry read_entry(const TomlSection& section) {
  constexpr std::array<std::string_view, 7> known{"name", "title", "caption", "verdicts",
                                                  "rows", "bytes", "crc32"};
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  section.allow_only(known);
  Entry entry;
  entry.table.name = section.text("name").value_or("");
  if (!is_plain_name(entry.table.name)) {
    throw UsageError(fmt::format("{}: name in [{}] must name the table's file",
                                 section.where("name"), section.name()));
  }
  entry.table.title = section.text("title").value_or("");
  entry.table.caption = section.text("caption").value_or("");
  entry.table.verdicts = section.flag("verdicts").value_or(false);
  const auto rows = section.number("rows", 0, kMost);
  const auto bytes = section.number("bytes", 0, kMost);
  const auto crc32 = section.text("crc32");
  if (rows && bytes && crc32) entry.record = schema::FileRecord{*rows, *bytes, *crc32};
  return entry;
}

}  // namespace

schema::Expected<std::vector<GuaranteeTable>> read_guarantees(const std::filesystem::path& input) {
  const std::filesystem::path folder = input / "guarantees";
  const std::filesystem::path index = folder / "tables.toml";
  std::vector<GuaranteeTable> tables;
  if (!is_there(index)) return tables;
  try {
    const TomlFile file = TomlFile::read(index.string());
    constexpr std::array<std::string_view, 1> known{"table"};
    file.top().allow_only(known);
    for (const TomlSection& section : file.top().sections("table")) {
      Entry entry = read_entry(section);
      const std::filesystem::path csv = folder / (entry.table.name + ".csv");
      auto cells = schema::read_csv(csv);
      if (!cells) return tl::unexpected(cells.error());
      entry.table.cells = std::move(*cells);
      if (entry.record) {
        auto sound =
            schema::check_file(csv, *entry.record, "tables.toml", "run 'perdura guarantees' again");
        if (!sound) return tl::unexpected(sound.error());
      }
      tables.push_back(std::move(entry.table));
    }
  } catch (const UsageError& mistake) {
    return schema::fail(fmt::format("{}; run 'perdura guarantees' again", mistake.what()));
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
