#include "harness/report/claims.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

namespace perdura::report {
namespace {

/// Reads one [[claim]]; keeps the first mistake.
class ClaimReader {
 public:
  explicit ClaimReader(const toml::table& entry) : entry_(entry) {}

  std::string text(const char* key, std::string fallback = "") {
    known_.insert(key);
    if (!entry_.contains(key) && !fallback.empty()) return fallback;
    auto found = entry_[key].value_exact<std::string>().value_or("");
    if (found.empty()) wrong(fmt::format("needs {} = \"...\"", key));
    return found;
  }

  std::vector<std::string> texts(const char* key) {
    known_.insert(key);
    return entry_.contains(key) ? list_of(entry_[key].node(), key) : std::vector<std::string>{};
  }

  std::vector<Condition> conditions(const char* key) {
    known_.insert(key);
    std::vector<Condition> found;
    if (!entry_.contains(key)) return found;
    const toml::table* table = entry_[key].as_table();
    if (table == nullptr) {
      wrong(fmt::format("{} must be a table such as {{ system = \"erda\" }}", key));
      return found;
    }
    for (const auto& [column, value] : *table) {
      found.push_back({std::string(column.str()), list_of(&value, key)});
    }
    return found;
  }

  std::optional<double> number(const char* key) {
    known_.insert(key);
    if (!entry_.contains(key)) return std::nullopt;
    const auto found = entry_[key].value<double>();
    if (!found || *found < 0) wrong(fmt::format("{} must be a number from 0", key));
    return found;
  }

  void wrong(const std::string& what) {
    if (mistake_.empty()) mistake_ = what;
  }

  const std::string& finish() {
    for (const auto& [key, value] : entry_) {
      if (!known_.contains(std::string(key.str()))) {
        wrong(fmt::format("unknown key '{}'", key.str()));
      }
    }
    return mistake_;
  }

 private:
  std::vector<std::string> list_of(const toml::node* node, const char* key) {
    std::vector<std::string> found;
    const auto add = [&](const toml::node& item) {
      const auto one = item.value_exact<std::string>();
      if (!one) wrong(fmt::format("{} takes strings and lists of them", key));
      found.push_back(one.value_or(""));
    };
    if (const toml::array* list = node->as_array()) {
      for (const toml::node& item : *list) add(item);
    } else {
      add(*node);
    }
    return found;
  }

  const toml::table& entry_;
  std::set<std::string> known_;
  std::string mistake_;
};

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
  for (const std::string_view key : Points::key_columns()) {
    if (names(claim.lower, key) || names(claim.higher, key)) continue;
    if (std::find(claim.any.begin(), claim.any.end(), key) != claim.any.end()) continue;
    columns.emplace_back(key);
  }
  return columns;
}

Expected<void> check_columns(const Claim& claim, const std::filesystem::path& file,
                             const Points& points) {
  std::vector<std::string> columns = claim.same;
  columns.insert(columns.end(), claim.any.begin(), claim.any.end());
  columns.push_back(claim.y);
  for (const auto* conditions : {&claim.where, &claim.lower, &claim.higher}) {
    for (const Condition& condition : *conditions) columns.push_back(condition.column);
  }
  for (const std::string& column : columns) {
    if (points.has_column(column)) continue;
    return fail(fmt::format("{}:{}: points.csv has no column '{}'; see docs/results.md",
                            file.string(), claim.line, column));
  }
  return {};
}

}  // namespace

Expected<std::vector<Claim>> read_claims(const std::filesystem::path& file) {
  toml::table document;
  try {
    document = toml::parse_file(file.string());
  } catch (const toml::parse_error& problem) {
    return fail(fmt::format("{}:{}: {}; mend the file", file.string(), problem.source().begin.line,
                            problem.description()));
  }
  std::vector<Claim> claims;
  const toml::array* entries = document["claim"].as_array();
  if (entries == nullptr || !entries->is_homogeneous<toml::table>()) {
    return fail(fmt::format("{}:1: has no [[claim]]; add one, or remove the file", file.string()));
  }
  for (const toml::node& entry : *entries) {
    ClaimReader reader(*entry.as_table());
    Claim claim;
    claim.section = reader.text("section");
    claim.text = reader.text("text");
    claim.y = reader.text("y", claim.y);
    claim.where = reader.conditions("where");
    claim.lower = reader.conditions("lower");
    claim.higher = reader.conditions("higher");
    claim.same = reader.texts("same");
    claim.any = reader.texts("any");
    claim.within_percent = reader.number("within_percent");
    claim.line = static_cast<std::size_t>(entry.source().begin.line);
    if (claim.lower.empty() || claim.higher.empty()) {
      reader.wrong("needs lower = { ... } and higher = { ... }");
    }
    if (const std::string& mistake = reader.finish(); !mistake.empty()) {
      return fail(
          fmt::format("{}:{}: claim: {}; see docs/figures.md", file.string(), claim.line, mistake));
    }
    claims.push_back(std::move(claim));
  }
  return claims;
}

Expected<ClaimResult> check(const Claim& claim, const std::filesystem::path& file,
                            const Points& points, const std::vector<std::size_t>& candidates) {
  if (auto known = check_columns(claim, file, points); !known) {
    return tl::unexpected(known.error());
  }
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
  ClaimResult result{.claim = &claim};
  for (const std::size_t low : rows_with(claim.lower)) {
    for (const std::size_t high : higher_rows) {
      const bool pair = low != high &&
                        std::all_of(columns.begin(), columns.end(), [&](const std::string& column) {
                          return points.text(low, column) == points.text(high, column);
                        });
      if (!pair) continue;
      const auto lower = points.number(low, claim.y);
      const auto higher = points.number(high, claim.y);
      if (!lower || !higher || *lower <= 0) continue;
      const double ratio = *higher / *lower;
      result.least_ratio = result.pairs == 0 ? ratio : std::min(result.least_ratio, ratio);
      result.largest_ratio = std::max(result.largest_ratio, ratio);
      ++result.pairs;
      const bool holds =
          claim.within_percent ? std::abs(ratio - 1) * 100 <= *claim.within_percent : ratio > 1;
      if (holds) ++result.holding;
    }
  }
  return result;
}

}  // namespace perdura::report
