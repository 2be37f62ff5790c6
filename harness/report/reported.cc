#include "harness/report/reported.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include "harness/report/csv_table.h"
#include "harness/report/formula.h"
#include "harness/report/quantity.h"

namespace perdura::report {
namespace {

bool covers(std::string_view reported, std::string_view figure) {
  if (reported == figure) return true;
  const auto dash = reported.find('-');
  if (dash == std::string_view::npos) return false;
  const auto first = parse_number(reported.substr(0, dash));
  const auto last = parse_number(reported.substr(dash + 1));
  const auto wanted = parse_number(figure);
  return first && last && wanted && *first <= *wanted && *wanted <= *last;
}

Expected<ReportedValue> read_value(const CsvTable& table, const CsvRow& row) {
  const auto cell = [&](std::string_view name) { return row.cells[*table.column(name)]; };
  ReportedValue value{
      cell("section"), cell("figure"), cell("quantity"), cell("workload"), cell("system"),
      cell("value"),   cell("unit"),   cell("kind"),     cell("note"),     0,
      row.line};
  const auto wrong = [&](const std::string& what) {
    return fail(fmt::format("{}:{}: {}", table.file.string(), row.line, what));
  };
  if (value.kind == "formula") {
    if (auto number = evaluate(value.value, {}); !number) {
      return wrong(fmt::format("{}; write a sum of products", number.error().message));
    }
  } else if (value.kind == "absolute" || value.kind == "ratio") {
    const auto number = parse_number(value.value);
    if (!number) return wrong(fmt::format("value is '{}'; it must be a number", value.value));
    value.number = *number;
  } else {
    return wrong(fmt::format("kind is '{}'; it must be absolute, ratio or formula", value.kind));
  }
  return value;
}

Expected<std::vector<Note>> read_notes(const std::filesystem::path& file) {
  std::vector<Note> notes;
  toml::table document;
  try {
    document = toml::parse_file(file.string());
  } catch (const toml::parse_error& problem) {
    return fail(fmt::format("{}:{}: {}; mend the file", file.string(), problem.source().begin.line,
                            problem.description()));
  }
  const toml::array* entries = document["note"].as_array();
  if (entries == nullptr) return notes;
  for (const toml::node& entry : *entries) {
    const toml::table* table = entry.as_table();
    const auto text = table ? (*table)["text"].value<std::string>() : std::nullopt;
    if (!text) {
      return fail(fmt::format("{}:{}: a note needs text = \"...\"", file.string(),
                              entry.source().begin.line));
    }
    Note note{{}, *text};
    if (const toml::array* figures = (*table)["figures"].as_array()) {
      for (const toml::node& figure : *figures) {
        note.figures.push_back(figure.value_or(std::string{}));
      }
    }
    notes.push_back(std::move(note));
  }
  return notes;
}

}  // namespace

const ReportedValue* ReportedPaper::find(std::string_view figure, std::string_view kind,
                                         std::string_view workload, std::string_view system) const {
  for (const ReportedValue& value : values) {
    if (value.kind == kind && covers(value.figure, figure) && !value.system.empty() &&
        value.workload == workload && value.system == system) {
      return &value;
    }
  }
  return nullptr;
}

Expected<ReportedPaper> read_reported(const std::filesystem::path& folder,
                                      const std::string& paper) {
  ReportedPaper reported;
  reported.file = folder / (paper + ".csv");
  auto table = read_csv(reported.file);
  if (!table) return tl::unexpected(table.error());
  const std::vector<std::string_view> columns{"paper",  "section", "figure", "quantity", "workload",
                                              "system", "value",   "unit",   "kind",     "note"};
  if (auto complete = require_columns(*table, columns); !complete) {
    return tl::unexpected(complete.error());
  }
  for (const CsvRow& row : table->rows) {
    auto value = read_value(*table, row);
    if (!value) return tl::unexpected(value.error());
    reported.values.push_back(std::move(*value));
  }
  const auto notes_file = folder / (paper + "-notes.toml");
  if (std::filesystem::exists(notes_file)) {
    auto notes = read_notes(notes_file);
    if (!notes) return tl::unexpected(notes.error());
    reported.notes = std::move(*notes);
  }
  reported.claims_file = folder / (paper + "-claims.toml");
  if (std::filesystem::exists(reported.claims_file)) {
    auto claims = read_claims(reported.claims_file);
    if (!claims) return tl::unexpected(claims.error());
    reported.claims = std::move(*claims);
  }
  return reported;
}

}  // namespace perdura::report
