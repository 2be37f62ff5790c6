#include "harness/report/csv_table.h"

#include <csv.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

#include "harness/config/printable.h"

namespace perdura::report {
namespace {

struct Reading {
  std::vector<CsvRow> rows;
  CsvRow current;
  std::size_t line = 1;
  std::size_t lines_inside_cells = 0;
};

void on_cell(void* text, std::size_t length, void* data) {
  auto& reading = *static_cast<Reading*>(data);
  std::string cell(static_cast<const char*>(text), length);
  reading.lines_inside_cells +=
      static_cast<std::size_t>(std::count(cell.begin(), cell.end(), '\n'));
  reading.current.cells.push_back(std::move(cell));
}

// With CSV_REPALL_NL libcsv reports every unquoted line end, blank lines included: this is what
// keeps the line numbers of later errors right.
void on_line_end(int character, void* data) {
  auto& reading = *static_cast<Reading*>(data);
  if (!reading.current.cells.empty()) {
    reading.current.line = reading.line;
    reading.rows.push_back(std::move(reading.current));
    reading.current = {};
  }
  if (character == '\n') {
    reading.line += 1 + reading.lines_inside_cells;
    reading.lines_inside_cells = 0;
  }
}

}  // namespace

std::optional<std::size_t> CsvTable::column(std::string_view name) const {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found == header.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header.begin());
}

Expected<CsvTable> read_csv(const std::filesystem::path& file, std::string_view advice) {
  std::ifstream input(file, std::ios::binary);
  if (!input || std::filesystem::is_directory(file)) {
    return fail(
        fmt::format("{}: cannot be read; check the path and the permissions", file.string()));
  }
  const std::string whole{std::istreambuf_iterator<char>(input), std::istreambuf_iterator<char>()};
  const std::string_view text = harness::without_byte_order_mark(whole);

  csv_parser parser;
  if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI | CSV_REPALL_NL) != 0) {
    return fail("the CSV parser could not be set up; free some memory and try again");
  }
  Reading reading;
  const bool complete =
      csv_parse(&parser, text.data(), text.size(), on_cell, on_line_end, &reading) == text.size() &&
      csv_fini(&parser, on_cell, on_line_end, &reading) == 0;
  csv_free(&parser);
  if (!complete) {
    return fail(fmt::format("{}:{}: a quotation mark is misplaced or never closed; {}",
                            file.string(), reading.line, advice));
  }
  if (reading.rows.empty()) {
    return fail(fmt::format("{}:1: the file is empty; {}", file.string(), advice));
  }

  CsvTable table;
  table.file = file;
  table.header = std::move(reading.rows.front().cells);
  table.rows.assign(std::make_move_iterator(reading.rows.begin() + 1),
                    std::make_move_iterator(reading.rows.end()));
  for (const CsvRow& row : table.rows) {
    if (row.cells.size() != table.header.size()) {
      return fail(fmt::format("{}:{}: {} cells where the header has {}; {}", file.string(),
                              row.line, row.cells.size(), table.header.size(), advice));
    }
  }
  return table;
}

Expected<void> require_columns(const CsvTable& table,
                               const std::vector<std::string_view>& columns) {
  for (const std::string_view name : columns) {
    if (!table.column(name)) {
      return fail(fmt::format(
          "{}:1: column '{}' is missing; this version of perdura needs it; write the file again with this version",
          table.file.string(), name));
    }
  }
  return {};
}

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char character : text) {
    if (character == '"') quoted += '"';
    quoted += character;
  }
  return quoted + '"';
}

std::optional<double> parse_number(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, problem] = std::from_chars(text.data(), end, number);
  if (text.empty() || problem != std::errc{} || stopped != end) return std::nullopt;
  return number;
}

}  // namespace perdura::report
