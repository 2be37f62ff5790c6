#include "report/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <unordered_map>
#include <utility>

#include "harness/program/data_folders.h"
#include "harness/schema/columns.h"
#include "harness/schema/csv_table.h"
#include "report/formula.h"

namespace perdura::report {
namespace {

constexpr double kMostTolerance = 1000;  // in percent
constexpr double kMostValue = 1e12;      // larger than any count or time here

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
  const auto in = [name](std::span<const schema::Column> columns) {
    return std::any_of(columns.begin(), columns.end(),
                       [&](const schema::Column& column) { return column.name == name; });
  };
  return in(schema::point_columns()) || in(schema::probe_settings()) ||
         in(schema::probe_readings());
}

/// Reads one row; keeps the first error.
class ClaimReader {
 public:
  ClaimReader(const schema::CsvTable& table, const schema::CsvRow& row)
      : table_(table), row_(row) {}

  std::string text(const char* column) const { return row_.cells[*table_.column(column)]; }

  std::string required(const char* column) {
    std::string found = text(column);
    if (found.empty()) wrong(fmt::format("{} is empty", column));
    return found;
  }

  /// Returns nullopt if the cell is empty.
  std::optional<double> number(const char* column, double most) {
    const std::string found = text(column);
    const auto read = schema::parse_number(found);
    if (!found.empty() && !(read && *read >= 0 && *read <= most)) {
      wrong(fmt::format("{} is '{}'; it must be a number from 0 to {}", column, found, most));
      return std::nullopt;
    }
    return read;
  }

  /// Parses "system=erda|redo-logging; operation=all".
  std::vector<schema::Condition> conditions(const char* column) {
    std::vector<schema::Condition> found;
    for (const std::string& part : split(text(column), ';')) {
      const auto equals = part.find('=');
      schema::Condition condition{part.substr(0, equals), {}};
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
    if (!column.empty() && !is_column(column)) declared_.push_back(column);
  }
  const std::vector<std::string>& declared() const { return declared_; }

  void wrong(const std::string& what) {
    if (mistake_.empty()) mistake_ = what;
  }
  const std::string& mistake() const { return mistake_; }

 private:
  const schema::CsvTable& table_;
  const schema::CsvRow& row_;
  std::vector<std::string> declared_;
  std::string mistake_;
};

constexpr std::array kKinds{Claim::Kind::exact, Claim::Kind::ratio, Claim::Kind::at_least,
                            Claim::Kind::at_most, Claim::Kind::order};
constexpr std::array kBases{Claim::Basis::prediction, Claim::Basis::fitted, Claim::Basis::input};

/// The value in a list whose name is in the cell.
template <class Value, std::size_t count>
Value read_word(ClaimReader& reader, const char* column, const std::array<Value, count>& values) {
  const std::string word = reader.text(column);
  std::vector<std::string_view> known;
  for (const Value value : values) {
    if (to_string(value) == word) return value;
    known.push_back(to_string(value));
  }
  reader.wrong(
      fmt::format("{} is '{}'; it must be one of: {}", column, word, fmt::join(known, ", ")));
  return values.front();
}

void read_value(ClaimReader& reader, Claim& claim) {
  if (claim.is_formula()) {
    const auto value = evaluate(claim.value, {});
    if (!value) reader.wrong(fmt::format("{}; write a sum of products", value.error().message));
    return;
  }
  // The ratio is infinite if one system writes something and another writes nothing.
  if (claim.value == "inf") {
    claim.number = std::numeric_limits<double>::infinity();
    return;
  }
  if (claim.value.empty()) reader.wrong("value is empty; it must be a number");
  claim.number = reader.number("value", kMostValue).value_or(0);
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
  if (claim.is_bound() && claim.y.empty()) reader.wrong("a bound needs y and where");
  const bool selects = sides || !claim.where.empty() || !claim.over.empty();
  if (claim.y.empty() && selects) reader.wrong("selectors need y");
}

/// Columns about measuring must be empty if the claim is not covered.
void check_not_covered(ClaimReader& reader) {
  for (const char* column : {"kind", "tolerance", "experiment", "y", "where", "lower", "higher",
                             "any", "same", "over", "basis"}) {
    if (!reader.text(column).empty()) {
      reader.wrong(fmt::format("{} must be empty, since not_covered is not", column));
    }
  }
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
  claim.note = reader.text("note");
  claim.not_covered = reader.text("not_covered");
  if (!claim.not_covered.empty()) {
    check_not_covered(reader);
    return claim;
  }
  claim.kind = read_word(reader, "kind", kKinds);
  claim.tolerance = reader.number("tolerance", kMostTolerance);
  claim.tolerance_reason = reader.text("tolerance_reason");
  claim.experiments = split(reader.required("experiment"), '|');
  claim.y = reader.text("y");
  reader.known(claim.y);
  claim.where = reader.conditions("where");
  claim.lower = reader.conditions("lower");
  claim.higher = reader.conditions("higher");
  claim.any = reader.columns("any");
  claim.same = reader.columns("same");
  claim.over = reader.conditions("over");
  claim.basis = read_word(reader, "basis", kBases);
  check_sides(reader, claim);
  if (claim.kind != Claim::Kind::order) read_value(reader, claim);
  return claim;
}

bool names(const std::vector<schema::Condition>& conditions, std::string_view column) {
  return std::any_of(conditions.begin(), conditions.end(), [&](const schema::Condition& condition) {
    return condition.column == column;
  });
}

bool all_hold(const std::vector<schema::Condition>& conditions, const Points& points,
              std::size_t row) {
  return std::all_of(conditions.begin(), conditions.end(), [&](const schema::Condition& condition) {
    return condition.holds(points.text(row, condition.column));
  });
}

/// All columns that tell points and their repetitions apart, except those that `leave_out` names.
template <class LeaveOut>
std::vector<std::string> keys_but(const Points& points, LeaveOut leave_out) {
  std::vector<std::string_view> keys = points.key_columns();
  for (const schema::Column& column : schema::probe_settings()) keys.push_back(column.name);
  keys.emplace_back("repetition");
  std::vector<std::string> columns;
  for (const std::string_view key : keys) {
    if (!leave_out(key)) columns.emplace_back(key);
  }
  return columns;
}

/// The columns in which the two rows of a pair must agree.
std::vector<std::string> agreeing(const Points& points, const Claim& claim) {
  std::vector<std::string> columns = keys_but(points, [&](std::string_view key) {
    return names(claim.lower, key) || names(claim.higher, key) ||
           std::find(claim.any.begin(), claim.any.end(), key) != claim.any.end();
  });
  columns.insert(columns.end(), claim.same.begin(), claim.same.end());
  return columns;
}

/// Rows indexed by their values in some columns, so that rows that agree are found without
/// comparing all pairs.
class RowsByKey {
 public:
  RowsByKey(const Points& points, std::vector<std::string> columns)
      : points_(points), columns_(std::move(columns)) {}

  void add(std::size_t row) { rows_[key_of(row)].push_back(row); }

  /// The rows that agree with `row`, in the order in which they were added.
  const std::vector<std::size_t>& agreeing_with(std::size_t row) const {
    static const std::vector<std::size_t> none;
    const auto found = rows_.find(key_of(row));
    return found == rows_.end() ? none : found->second;
  }

 private:
  std::string key_of(std::size_t row) const {
    std::string key;
    for (const std::string& column : columns_) {
      key += points_.text(row, column);
      key += '\0';
    }
    return key;
  }

  const Points& points_;
  std::vector<std::string> columns_;
  std::unordered_map<std::string, std::vector<std::size_t>> rows_;
};

/// y of a row, divided by that of the row which `over` names.
class RowValues {
 public:
  RowValues(const Claim& claim, const Points& points, const std::vector<std::size_t>& candidates)
      : claim_(claim), points_(points), bases_(points, keys_but(points, [&](std::string_view key) {
                                                 return names(claim.over, key);
                                               })) {
    if (claim.over.empty()) return;
    for (const std::size_t row : candidates) {
      if (points.valid(row) && all_hold(claim.over, points, row)) bases_.add(row);
    }
  }

  std::optional<double> of(std::size_t row) const {
    const auto y = points_.number(row, claim_.y);
    if (!y || claim_.over.empty()) return y;
    const auto& bases = bases_.agreeing_with(row);
    const auto by = bases.empty() ? std::nullopt : points_.number(bases.front(), claim_.y);
    return by && *by > 0 ? std::optional(*y / *by) : std::nullopt;
  }

 private:
  const Claim& claim_;
  const Points& points_;
  RowsByKey bases_;
};

}  // namespace

bool Claim::is_about(std::string_view shown) const {
  const std::string_view shown_by = figure;
  if (shown_by == shown) return true;
  const auto dash = shown_by.find('-');
  if (dash == std::string_view::npos) return false;
  const auto first = schema::parse_number(shown_by.substr(0, dash));
  const auto last = schema::parse_number(shown_by.substr(dash + 1));
  const auto wanted = schema::parse_number(shown);
  return first && last && wanted && *first <= *wanted && *wanted <= *last;
}

std::string_view to_string(Claim::Kind kind) {
  switch (kind) {
    case Claim::Kind::exact:
      return "exact";
    case Claim::Kind::ratio:
      return "ratio";
    case Claim::Kind::at_least:
      return "at least";
    case Claim::Kind::at_most:
      return "at most";
    case Claim::Kind::order:
      return "order";
  }
  return "";
}

std::string_view to_string(Claim::Basis basis) {
  switch (basis) {
    case Claim::Basis::prediction:
      return "prediction";
    case Claim::Basis::fitted:
      return "fitted";
    case Claim::Basis::input:
      return "input";
  }
  return "";
}

schema::Expected<std::vector<Claim>> read_claims(const std::filesystem::path& file) {
  auto table = schema::read_csv(file);
  if (!table) return tl::unexpected(table.error());
  const std::vector<std::string_view> columns{
      "id",         "paper", "section", "figure", "quantity",   "workload",
      "system",     "value", "unit",    "kind",   "tolerance",  "tolerance_reason",
      "experiment", "y",     "where",   "lower",  "higher",     "any",
      "same",       "over",  "basis",   "note",   "not_covered"};
  if (auto complete = schema::require_columns(*table, columns); !complete) {
    return tl::unexpected(complete.error());
  }
  std::vector<Claim> claims;
  std::set<std::string> ids;
  for (const schema::CsvRow& row : table->rows) {
    ClaimReader reader(*table, row);
    Claim claim = read_claim(reader);
    claim.line = row.line;
    claim.declared = reader.declared();
    if (!ids.insert(claim.id).second) reader.wrong(fmt::format("id '{}' is used twice", claim.id));
    if (!reader.mistake().empty()) {
      return schema::fail(fmt::format("{}:{}: {}; see {}", file.string(), row.line,
                                      reader.mistake(), harness::document_path("claims.md")));
    }
    claims.push_back(std::move(claim));
  }
  return claims;
}

double Pairs::least() const { return *std::min_element(ratios.begin(), ratios.end()); }
double Pairs::largest() const { return *std::max_element(ratios.begin(), ratios.end()); }

Pairs find_pairs(const Claim& claim, const Points& points,
                 const std::vector<std::size_t>& candidates) {
  const auto is_on = [&](const std::vector<schema::Condition>& side, std::size_t row) {
    return points.valid(row) && all_hold(claim.where, points, row) && all_hold(side, points, row);
  };
  RowsByKey higher_rows(points, agreeing(points, claim));
  for (const std::size_t row : candidates) {
    if (is_on(claim.higher, row)) higher_rows.add(row);
  }
  const RowValues values(claim, points, candidates);
  Pairs pairs;
  for (const std::size_t low : candidates) {
    if (!is_on(claim.lower, low)) continue;
    const auto lower = values.of(low);
    if (!lower || *lower <= 0) continue;
    for (const std::size_t high : higher_rows.agreeing_with(low)) {
      const auto higher = low == high ? std::nullopt : values.of(high);
      if (higher) pairs.ratios.push_back(*higher / *lower);
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

std::vector<double> values_of(const Claim& claim, const Points& points,
                              const std::vector<std::size_t>& candidates) {
  const RowValues values(claim, points, candidates);
  std::vector<double> found;
  for (const std::size_t row : candidates) {
    if (!points.valid(row) || !all_hold(claim.where, points, row)) continue;
    if (const auto y = values.of(row)) found.push_back(*y);
  }
  return found;
}

}  // namespace perdura::report
