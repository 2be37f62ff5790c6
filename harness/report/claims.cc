#include "harness/report/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "harness/report/columns.h"
#include "harness/report/csv_table.h"
#include "harness/report/formula.h"

namespace perdura::report {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find(separator), text.size());
    std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    if (!part.empty()) parts.emplace_back(part);
  }
  return parts;
}

bool is_column(std::string_view name) {
  const auto named = [name](std::string_view column) { return column == name; };
  return std::any_of(kProbeSettings.begin(), kProbeSettings.end(), named) ||
         std::any_of(kProbeReadings.begin(), kProbeReadings.end(), named) ||
         std::any_of(kPointColumns.begin(), kPointColumns.end(),
                     [&](const Column& column) { return column.name == name; });
}

/// Reads one row; keeps the first mistake.
class ClaimReader {
 public:
  ClaimReader(const CsvTable& table, const CsvRow& row) : table_(table), row_(row) {}

  std::string text(const char* column) const { return row_.cells[*table_.column(column)]; }

  std::string required(const char* column) {
    std::string found = text(column);
    if (found.empty()) wrong(fmt::format("{} is empty", column));
    return found;
  }

  std::optional<double> number(const char* column) {
    const std::string found = text(column);
    const auto read = parse_number(found);
    if (!found.empty() && (!read || !(*read >= 0))) {
      wrong(fmt::format("{} is '{}'; it must be a number from 0", column, found));
    }
    return read;
  }

  /// "system=erda|redo-logging; operation=all".
  std::vector<Condition> conditions(const char* column) {
    std::vector<Condition> found;
    for (const std::string& part : split(text(column), ';')) {
      const auto equals = part.find('=');
      Condition condition{part.substr(0, equals), {}};
      if (equals != std::string::npos) condition.any_of = split(part.substr(equals + 1), '|');
      if (condition.any_of.empty()) {
        wrong(fmt::format("{}: '{}' must be COLUMN=VALUE or COLUMN=VALUE|VALUE", column, part));
      }
      known(condition.column);
      found.push_back(std::move(condition));
    }
    return found;
  }

  std::vector<std::string> columns(const char* column) {
    std::vector<std::string> found = split(text(column), ';');
    for (const std::string& name : found) known(name);
    return found;
  }

  void known(const std::string& column) {
    if (!column.empty() && !is_column(column)) {
      wrong(fmt::format("neither points.csv nor probes.csv has a column '{}'", column));
    }
  }

  void wrong(const std::string& what) {
    if (mistake_.empty()) mistake_ = what;
  }
  const std::string& mistake() const { return mistake_; }

 private:
  const CsvTable& table_;
  const CsvRow& row_;
  std::string mistake_;
};

Claim::Kind read_kind(ClaimReader& reader) {
  const std::string kind = reader.text("kind");
  if (kind == "exact") return Claim::Kind::exact;
  if (kind == "ratio") return Claim::Kind::ratio;
  if (kind != "order") {
    reader.wrong(fmt::format("kind is '{}'; it must be exact, ratio or order", kind));
  }
  return Claim::Kind::order;
}

void read_value(ClaimReader& reader, Claim& claim) {
  if (claim.is_formula()) {
    const auto value = evaluate(claim.value, {});
    if (!value) reader.wrong(fmt::format("{}; write a sum of products", value.error().message));
    return;
  }
  const auto number = parse_number(claim.value);
  if (!number) reader.wrong(fmt::format("value is '{}'; it must be a number", claim.value));
  claim.number = number.value_or(0);
}

void check_sides(ClaimReader& reader, const Claim& claim) {
  const bool sides = !claim.lower.empty() && !claim.higher.empty();
  if (claim.lower.empty() != claim.higher.empty()) reader.wrong("lower and higher need each other");
  if (claim.kind == Claim::Kind::order) {
    if (!claim.value.empty()) reader.wrong("an order has no value");
    if (!sides) reader.wrong("an order needs lower and higher");
  } else {
    if (!claim.tolerance) reader.wrong("tolerance is empty");
    if (claim.y.empty() && claim.figure.empty()) reader.wrong("needs a figure, or y and where");
  }
  if (claim.tolerance && claim.tolerance_reason.empty()) reader.wrong("tolerance_reason is empty");
  if (claim.y.empty() && (sides || !claim.where.empty())) reader.wrong("selectors need y");
}

Claim read_claim(ClaimReader& reader) {
  Claim claim;
  claim.id = reader.required("id");
  claim.paper = reader.required("paper");
  claim.section = reader.required("section");
  claim.figure = reader.text("figure");
  claim.quantity = reader.required("quantity");
  claim.workload = reader.text("workload");
  claim.system = reader.text("system");
  claim.value = reader.text("value");
  claim.unit = reader.text("unit");
  claim.kind = read_kind(reader);
  claim.tolerance = reader.number("tolerance");
  claim.tolerance_reason = reader.text("tolerance_reason");
  claim.experiments = split(reader.required("experiment"), '|');
  claim.y = reader.text("y");
  reader.known(claim.y);
  claim.where = reader.conditions("where");
  claim.lower = reader.conditions("lower");
  claim.higher = reader.conditions("higher");
  claim.any = reader.columns("any");
  claim.same = reader.columns("same");
  claim.note = reader.text("note");
  const std::string fitted = reader.text("fitted");
  if (fitted != "yes" && fitted != "no") {
    reader.wrong(fmt::format("fitted is '{}'; it must be yes or no", fitted));
  }
  claim.fitted = fitted == "yes";
  check_sides(reader, claim);
  if (claim.kind != Claim::Kind::order) read_value(reader, claim);
  return claim;
}

bool names(const std::vector<Condition>& conditions, std::string_view column) {
  return std::any_of(conditions.begin(), conditions.end(),
                     [&](const Condition& condition) { return condition.column == column; });
}

bool all_hold(const std::vector<Condition>& conditions, const Points& points, std::size_t row) {
  return std::all_of(conditions.begin(), conditions.end(), [&](const Condition& condition) {
    return condition.holds(points.text(row, condition.column));
  });
}

/// The columns in which the rows of a pair agree.
std::vector<std::string> agreeing(const Claim& claim) {
  std::vector<std::string> columns = claim.same;
  columns.emplace_back("repetition");
  std::vector<std::string_view> keys = Points::key_columns();
  keys.insert(keys.end(), kProbeSettings.begin(), kProbeSettings.end());
  for (const std::string_view key : keys) {
    if (names(claim.lower, key) || names(claim.higher, key)) continue;
    if (std::find(claim.any.begin(), claim.any.end(), key) != claim.any.end()) continue;
    columns.emplace_back(key);
  }
  return columns;
}

}  // namespace

std::string_view to_string(Claim::Kind kind) {
  switch (kind) {
    case Claim::Kind::exact:
      return "exact";
    case Claim::Kind::ratio:
      return "ratio";
    case Claim::Kind::order:
      return "order";
  }
  return "";
}

Expected<std::vector<Claim>> read_claims(const std::filesystem::path& file) {
  auto table = read_csv(file);
  if (!table) return tl::unexpected(table.error());
  const std::vector<std::string_view> columns{
      "id",         "paper",  "section", "figure", "quantity",  "workload",
      "system",     "value",  "unit",    "kind",   "tolerance", "tolerance_reason",
      "experiment", "y",      "where",   "lower",  "higher",    "any",
      "same",       "fitted", "note"};
  if (auto complete = require_columns(*table, columns); !complete) {
    return tl::unexpected(complete.error());
  }
  std::vector<Claim> claims;
  std::set<std::string> ids;
  for (const CsvRow& row : table->rows) {
    ClaimReader reader(*table, row);
    Claim claim = read_claim(reader);
    claim.line = row.line;
    if (!ids.insert(claim.id).second) reader.wrong(fmt::format("id '{}' is used twice", claim.id));
    if (!reader.mistake().empty()) {
      return fail(
          fmt::format("{}:{}: {}; see docs/claims.md", file.string(), row.line, reader.mistake()));
    }
    claims.push_back(std::move(claim));
  }
  return claims;
}

double Pairs::least() const { return *std::min_element(ratios.begin(), ratios.end()); }
double Pairs::largest() const { return *std::max_element(ratios.begin(), ratios.end()); }

Pairs find_pairs(const Claim& claim, const Points& points,
                 const std::vector<std::size_t>& candidates) {
  const std::vector<std::string> columns = agreeing(claim);
  const auto rows_with = [&](const std::vector<Condition>& side) {
    std::vector<std::size_t> rows;
    for (const std::size_t row : candidates) {
      if (points.valid(row) && all_hold(claim.where, points, row) && all_hold(side, points, row)) {
        rows.push_back(row);
      }
    }
    return rows;
  };
  const std::vector<std::size_t> higher_rows = rows_with(claim.higher);
  Pairs pairs;
  for (const std::size_t low : rows_with(claim.lower)) {
    for (const std::size_t high : higher_rows) {
      const bool pair = low != high &&
                        std::all_of(columns.begin(), columns.end(), [&](const std::string& column) {
                          return points.text(low, column) == points.text(high, column);
                        });
      if (!pair) continue;
      const auto lower = points.number(low, claim.y);
      const auto higher = points.number(high, claim.y);
      if (lower && higher && *lower > 0) pairs.ratios.push_back(*higher / *lower);
    }
  }
  return pairs;
}

std::size_t holding(const Claim& claim, const Pairs& pairs) {
  return static_cast<std::size_t>(
      std::count_if(pairs.ratios.begin(), pairs.ratios.end(), [&](double ratio) {
        return claim.tolerance ? std::abs(ratio - 1) * 100 <= *claim.tolerance : ratio > 1;
      }));
}

std::optional<double> mean_of(const Claim& claim, const Points& points,
                              const std::vector<std::size_t>& candidates) {
  double sum = 0;
  std::size_t count = 0;
  for (const std::size_t row : candidates) {
    if (!points.valid(row) || !all_hold(claim.where, points, row)) continue;
    const auto y = points.number(row, claim.y);
    if (!y) continue;
    sum += *y;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / static_cast<double>(count);
}

}  // namespace perdura::report
