#include "harness/schema/csv_table.h"

#include <csv.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>

#include "harness/text/printable.h"
#include "platform/base/path_kind.h"

namespace perdura::schema {
namespace {

class Reading {
 public:
  using Header = std::function<Expected<void>(const std::vector<std::string>&)>;
  using Row = std::function<Expected<void>(const CsvRow&)>;

  Reading(const std::filesystem::path& file, std::string_view advice, const Header& header,
          const Row& row)
      : file_(file), advice_(advice), header_(header), row_(row) {}

  // The strings of cells are reused from row to row, so that they are not allocated again.
  void cell(std::string_view text) {
    if (cells_ == current_.cells.size()) current_.cells.emplace_back();
    current_.cells[cells_++].assign(text);
    lines_inside_cells_ += static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  // With CSV_REPALL_NL libcsv reports every unquoted line end, blank lines included: this is what
  // keeps the line numbers of later errors right.
  void line_end(int character) {
    if (cells_ > 0 && !problem_) {
      current_.cells.resize(cells_);
      current_.line = line_;
      if (const auto taken = take(); !taken) problem_ = taken.error();
    }
    cells_ = 0;
    if (character == '\n') {
      line_ += 1 + lines_inside_cells_;
      lines_inside_cells_ = 0;
    }
  }

  std::size_t line() const { return line_; }
  bool any() const { return columns_ > 0; }
  const std::optional<Error>& problem() const { return problem_; }

 private:
  Expected<void> take() {
    if (columns_ == 0) {
      columns_ = current_.cells.size();
      return header_(current_.cells);
    }
    if (current_.cells.size() == columns_) return row_(current_);
    return fail(fmt::format("{}:{}: {} cells where the header has {}; {}", file_.string(),
                            current_.line, current_.cells.size(), columns_, advice_));
  }

  const std::filesystem::path& file_;
  std::string_view advice_;
  const Header& header_;
  const Row& row_;
  CsvRow current_;
  std::size_t cells_ = 0;    // number of cells so far in the current row
  std::size_t columns_ = 0;  // number of columns in the header
  std::size_t line_ = 1;
  std::size_t lines_inside_cells_ = 0;
  std::optional<Error> problem_;
};

void on_cell(void* text, std::size_t length, void* data) {
  static_cast<Reading*>(data)->cell({static_cast<const char*>(text), length});
}

void on_line_end(int character, void* data) { static_cast<Reading*>(data)->line_end(character); }

// Frees the parser in all cases.
struct Parser {
  csv_parser parser;
  bool ready = csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI | CSV_REPALL_NL) == 0;

  ~Parser() {
    if (ready) csv_free(&parser);
  }
};

}  // namespace

std::optional<std::size_t> CsvTable::column(std::string_view name) const {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found == header.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header.begin());
}

Expected<void> for_each_row(
    const std::filesystem::path& file, std::string_view advice,
    const std::function<Expected<void>(const std::vector<std::string>& cells)>& header,
    const std::function<Expected<void>(const CsvRow& row)>& row) {
  std::ifstream input(file, std::ios::binary);
  if (!input || kind_of(file) == PathKind::folder) {
    return fail(
        fmt::format("{}: {}; check the path and the permissions", file.string(), not_a_file(file)));
  }
  Parser csv;
  if (!csv.ready) {
    return fail("the CSV parser could not be set up; free some memory and try again");
  }
  Reading reading(file, advice, header, row);
  std::vector<char> piece(std::size_t{1} << 16);
  bool sound = true;
  bool first = true;
  while (sound && !reading.problem() && input) {
    input.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    std::string_view text(piece.data(), static_cast<std::size_t>(input.gcount()));
    if (first) text = harness::without_byte_order_mark(text);
    first = false;
    sound = csv_parse(&csv.parser, text.data(), text.size(), on_cell, on_line_end, &reading) ==
            text.size();
  }
  if (sound && !reading.problem()) {
    sound = csv_fini(&csv.parser, on_cell, on_line_end, &reading) == 0;
  }
  if (reading.problem()) return tl::unexpected(*reading.problem());
  if (!sound) {
    return fail(fmt::format("{}:{}: a quotation mark is misplaced or never closed; {}",
                            file.string(), reading.line(), advice));
  }
  if (!reading.any()) {
    return fail(fmt::format("{}:1: the file is empty; {}", file.string(), advice));
  }
  return {};
}

Expected<CsvTable> read_csv(const std::filesystem::path& file, std::string_view advice) {
  CsvTable table;
  table.file = file;
  const auto read = for_each_row(
      file, advice,
      [&](const std::vector<std::string>& cells) -> Expected<void> {
        table.header = cells;
        return {};
      },
      [&](const CsvRow& row) -> Expected<void> {
        table.rows.push_back(row);
        return {};
      });
  if (!read) return tl::unexpected(read.error());
  return table;
}

Expected<void> require_columns(const CsvTable& table,
                               const std::vector<std::string_view>& columns) {
  for (const std::string_view name : columns) {
    if (!table.column(name)) {
      return fail(
          fmt::format("{}:1: column '{}' is missing; this version of perdura needs it; write the "
                      "file again with this version",
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

}  // namespace perdura::schema
