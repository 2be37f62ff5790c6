#include "harness/schema/spec.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <set>
#include <string_view>

#include "harness/program/data_folders.h"
#include "harness/schema/columns.h"
#include "harness/schema/csv_table.h"
#include "harness/schema/quantity.h"
#include "harness/schema/spec_reader.h"
#include "platform/base/plain_name.h"
#include "platform/base/suggestion.h"
#include "platform/base/toml_section.h"

namespace perdura::schema {
namespace {

/// Reads one [[figure]] or [[table]]; keeps the first error and then reads on harmlessly.
class EntryReader {
 public:
  EntryReader(const Where& where, const Schema& schema, const char* kind, const toml::table& entry)
      : where_(where), schema_(schema), kind_(kind), entry_(entry) {}

  /// The place of the key's value, if it is there, and otherwise of the entry.
  std::string place(std::string_view key = "") const {
    const toml::node* node = entry_.get(key);
    return where_(node == nullptr ? entry_.source() : node->source());
  }
  std::size_t line() const { return static_cast<std::size_t>(entry_.source().begin.line); }

  std::string required(const char* key) {
    std::string text = optional(key);
    if (text.empty()) wrong(fmt::format("needs {} = \"...\"", key), key);
    return text;
  }

  std::string optional(const char* key, std::string fallback = "") {
    known_.insert(key);
    const toml::node* node = entry_.get(key);
    if (node == nullptr) return fallback;
    if (auto text = scalar(*node); text && node->is_string()) return *text;
    wrong(fmt::format("{} must be a string, but is {}", key, words_for(*node)), key);
    return fallback;
  }

  /// A text, or a list of texts.
  std::vector<std::string> texts(const char* key) {
    known_.insert(key);
    const toml::node* node = entry_.get(key);
    const toml::array* list = node == nullptr ? nullptr : node->as_array();
    if (list == nullptr) return {required(key)};
    std::vector<std::string> found;
    for (const toml::node& item : *list) {
      found.push_back(item.value_exact<std::string>().value_or(""));
      if (!found.back().empty()) continue;
      wrong(fmt::format("{} must be a string or a list of them, but has {}", key, words_for(item)),
            key);
      return {""};
    }
    if (!found.empty()) return found;
    wrong(fmt::format("{} must be a string or a list of them, but is empty", key), key);
    return {""};
  }

  std::vector<Condition> conditions(const char* key) {
    known_.insert(key);
    std::vector<Condition> found;
    const toml::node* node = entry_.get(key);
    if (node == nullptr) return found;
    const toml::table* table = node->as_table();
    if (table == nullptr) {
      wrong(fmt::format("{} must be a table such as {{ workload = \"workloada\" }}, but is {}", key,
                        words_for(*node)),
            key);
      return found;
    }
    for (const auto& [column, value] : *table) {
      Condition condition{std::string(column.str()), {}};
      if (const toml::array* list = value.as_array()) {
        for (const toml::node& item : *list) add(condition, item, key);
      } else {
        add(condition, value, key);
      }
      found.push_back(std::move(condition));
    }
    return found;
  }

  /// Reports an error at the place of the key, if it is there.
  void wrong(const std::string& what, std::string_view key = "") {
    if (!error_) error_ = error(what, key);
  }

  /// Reports an error unless the column that the key names, if any, is in points.csv.
  void known_column(const std::string& column, std::string_view key) {
    if (column.empty() || schema_.in_points(column)) return;
    std::vector<std::string_view> known;
    for (const Column& each : schema_.columns()) known.push_back(each.name);
    const std::string_view meant = nearest(column, known);
    wrong(fmt::format("points.csv has no column '{}'{}; {} lists them", column,
                      meant.empty() ? "" : fmt::format(" (did you mean '{}'?)", meant),
                      harness::document_path("results.md")),
          key);
  }

  /// Reports an error if the column that the key names has words, which cannot be drawn.
  void column_of_numbers(const std::string& column, std::string_view key) {
    const Column* const known = schema_.find(column);
    if (known == nullptr || known->kind == Column::Kind::number) return;
    wrong(fmt::format("{} takes a column of numbers, and {} has words", key, column), key);
  }

  /// To be called when all keys have been read. An unknown key is reported before all other errors,
  /// since it may be the one that is missing, mistyped.
  std::optional<Error> finish() const {
    std::vector<std::string_view> keys;
    for (const auto& [key, value] : entry_) keys.push_back(key.str());
    const std::vector<std::string_view> known(known_.begin(), known_.end());
    const std::string_view* const unknown = mistyped(keys, known);
    return unknown == nullptr ? error_ : error(unknown_name("key", *unknown, known), *unknown);
  }

 private:
  Error error(const std::string& what, std::string_view key) const {
    const std::string id = entry_["id"].value_or(std::string("?"));
    return {fmt::format("{}: {} {}: {}; see {}", place(key), kind_, id, what,
                        harness::document_path("figures.md"))};
  }

  static std::optional<std::string> scalar(const toml::node& node) {
    if (const auto text = node.value_exact<std::string>()) return text;
    if (const auto whole = node.value_exact<std::int64_t>()) return fmt::to_string(*whole);
    const auto real = node.value_exact<double>();
    if (real && std::isfinite(*real)) return fmt::to_string(*real);
    return std::nullopt;
  }

  void add(Condition& condition, const toml::node& node, const char* key) {
    if (auto text = scalar(node)) {
      condition.any_of.push_back(std::move(*text));
    } else {
      wrong(fmt::format("{} must be a string, a finite number or a list of them, but is {}",
                        condition.column, words_for(node)),
            key);
    }
  }

  const Where& where_;
  const Schema& schema_;
  const char* kind_;
  const toml::table& entry_;
  std::set<std::string> known_;
  std::optional<Error> error_;
};

/// Reads the keys that all kinds of entries share.
void read_identity(EntryReader& entry, DataSpec& spec) {
  spec.line = entry.line();
  spec.place = entry.place();
  spec.id = entry.required("id");
  if (!is_plain_name(spec.id)) {
    entry.wrong("id may hold letters, digits, '-', '_' and '.' only", "id");
  }
  spec.title = entry.required("title");
  spec.paper = entry.optional("paper");
  if (!spec.paper.empty() && !is_plain_name(spec.paper)) {
    entry.wrong("paper must be a plain name", "paper");
  }
  spec.where = entry.conditions("where");
  for (const Condition& condition : spec.where) entry.known_column(condition.column, "where");
}

void read_data(EntryReader& entry, DataSpec& spec) {
  read_identity(entry, spec);
  spec.y = entry.required("y");
  spec.series = entry.optional("series", "system");
  entry.known_column(spec.y, "y");
  entry.column_of_numbers(spec.y, "y");
  entry.known_column(spec.series, "series");
  spec.baseline = entry.optional("baseline");
  auto normalize = entry.conditions("normalize");
  if (normalize.size() > 1 || (normalize.size() == 1 && normalize[0].any_of.size() != 1)) {
    entry.wrong("normalize takes one column with one value", "normalize");
  } else if (normalize.size() == 1) {
    if (normalize[0].column != spec.series) {
      entry.wrong("normalize must name the series' column", "normalize");
    }
    if (spec.baseline.empty()) spec.baseline = normalize[0].any_of[0];
    spec.normalize = std::move(normalize[0]);
  }
}

/// Errors in [systems] were reported when the experiment was run.
SystemNames read_systems(const toml::table& document, const Schema& schema) {
  SystemNames names;
  if (const toml::table* const systems = document["systems"].as_table()) {
    for (const auto& [name, node] : *systems) {
      const toml::table* system = node.as_table();
      if (system == nullptr) continue;
      if (system->contains("variant_of")) names.variants.emplace(name.str());
      if (const auto title = (*system)["title"].value<std::string>()) {
        names.titles.emplace(name.str(), *title);
      }
    }
  }
  for (const auto& [name, title] : schema.find("system")->words) names.titles.emplace(name, title);
  return names;
}

FigureSpec read_figure(EntryReader& entry) {
  FigureSpec spec;
  const std::string data = entry.optional("data", "points");
  spec.data_place = entry.place("data");
  if (data != "points" && data != "timeline") {
    entry.wrong("data must be points or timeline", "data");
  }
  if (data == "timeline") {
    spec.data = FigureSpec::Data::timeline;
    read_identity(entry, spec);
    spec.x = "time_ms";
    spec.y = "latency_mean_us";
  } else {
    read_data(entry, spec);
    const std::vector<std::string> columns = entry.texts("x");
    spec.x = columns.front();
    spec.x_more.assign(columns.begin() + 1, columns.end());
    spec.at = entry.optional("at");
    for (const std::string& column : columns) entry.known_column(column, "x");
    entry.known_column(spec.at, "at");
    if (!spec.at.empty() && !spec.x_more.empty()) {
      entry.wrong("at takes a single column as x", "at");
    }
  }
  spec.plot = entry.required("plot");
  spec.plot_place = entry.place("plot");
  if (!is_plain_name(spec.plot)) {
    entry.wrong("plot must be the plain name of a script in plots/", "plot");
  }
  return spec;
}

TableSpec read_table(EntryReader& entry) {
  TableSpec spec;
  read_data(entry, spec);
  const std::string kind = entry.required("kind");
  if (kind == "average") {
    spec.kind = TableSpec::Kind::average;
    spec.x = entry.required("x");
  } else if (kind == "formula") {
    spec.x = entry.optional("x", "value_size");
    if (spec.paper.empty()) entry.wrong("a table of formulas needs paper = \"...\"");
    if (spec.normalize) {
      entry.wrong("a table of formulas cannot be normalized", "normalize");
    }
  } else {
    entry.wrong("kind must be formula or average", "kind");
  }
  spec.group = entry.optional("group", "workload");
  entry.known_column(spec.x, "x");
  entry.known_column(spec.group, "group");
  return spec;
}

}  // namespace

bool Condition::holds(const std::string& cell) const {
  return std::any_of(any_of.begin(), any_of.end(), [&](const std::string& wanted) {
    if (wanted == cell) return true;
    const auto left = parse_number(wanted);
    return left && left == parse_number(cell);
  });
}

std::string SystemNames::shown(std::string_view system) const {
  const auto title = titles.find(system);
  return title == titles.end() ? shown_name(system) : title->second;
}

std::string DataSpec::shown_series(std::string_view value) const {
  if (series == "system") return systems.shown(value);
  const Column* const column = schema.find(series);
  const std::string shown = schema.shown(series, value);
  // Values with words of their own need no noun; those of other parameters do.
  if (column == nullptr || column->role != Column::Role::parameter || shown != value) return shown;
  const Quantity& quantity = column->shown;
  if (!quantity.unit.empty()) return fmt::format("{} {} {}", quantity.noun, value, quantity.unit);
  const bool counts = column->kind == Column::Kind::number && quantity.noun.ends_with('s');
  if (!counts) return fmt::format("{} {}", quantity.noun, value);
  // "1 server", "2 servers"
  const std::size_t letters = quantity.noun.size() - (value == "1" ? 1 : 0);
  return fmt::format("{} {}", value, quantity.noun.substr(0, letters));
}

std::string DataSpec::shown_x(std::string_view x_value) const {
  // If x combines several columns, its values are already in their shown form.
  return x == "workload" && x_more.empty() ? shown_workload(x_value) : std::string(x_value);
}

std::string DataSpec::shown_x_axis() const {
  std::string axis = schema.quantity(x).axis_with_unit();
  for (const std::string& column : x_more)
    axis += fmt::format(" / {}", schema.quantity(column).noun);
  return axis;
}

std::string DataSpec::shown_position_axis() const {
  return at.empty() ? shown_x_axis() : schema.quantity(at).axis_with_unit();
}

Expected<Specs> read_specs(const std::filesystem::path& experiment_toml, const Schema& schema) {
  toml::table document;
  try {
    document = toml::parse_file(experiment_toml.string());
  } catch (const toml::parse_error& problem) {
    return fail(fmt::format("{}:{}: {}; mend the file", experiment_toml.string(),
                            problem.source().begin.line, problem.description()));
  }
  const auto where = [&](const toml::source_region& part) {
    return fmt::format("{}:{}", experiment_toml.string(), part.begin.line);
  };
  auto specs = read_specs(document, where, schema);
  if (!specs) return specs;
  // Every experiment has a name. Without it the file was emptied, or is something else, and a
  // report of no figures would look like one of an experiment that has none.
  if (!document["name"].value_exact<std::string>()) {
    return fail(fmt::format("{}:1: name is missing; restore the file, or run the experiment again",
                            experiment_toml.string()));
  }
  specs->file = experiment_toml;
  return specs;
}

Expected<Specs> read_specs(const toml::table& document, const Where& where, const Schema& schema) {
  Specs specs{{}, read_systems(document, schema), {}, {}};
  std::set<std::string> ids;
  const auto read_all = [&](const char* kind, auto& list, auto read_one) -> std::optional<Error> {
    const toml::node* node = document.get(kind);
    if (node == nullptr) return std::nullopt;
    const toml::array* array = node->as_array();
    if (array == nullptr || !array->is_homogeneous<toml::table>()) {
      return Error{fmt::format("{}: {} must be written [[{}]], but is {}; see {}",
                               where(node->source()), kind, kind, words_for(*node),
                               harness::document_path("figures.md"))};
    }
    for (const toml::node& item : *array) {
      EntryReader entry(where, schema, kind, *item.as_table());
      auto spec = read_one(entry);
      if (!ids.insert(kind + spec.id).second) entry.wrong("the id is used twice", "id");
      if (auto error = entry.finish()) return error;
      spec.systems = specs.systems;
      spec.schema = schema;
      list.push_back(std::move(spec));
    }
    return std::nullopt;
  };
  if (auto error = read_all("figure", specs.figures, read_figure)) return tl::unexpected(*error);
  if (auto error = read_all("table", specs.tables, read_table)) return tl::unexpected(*error);
  return specs;
}

Expected<XAxis> x_axis_of(const std::filesystem::path& script) {
  errno = 0;
  std::ifstream stream(script);
  if (!stream && errno == ENOENT) {
    return fail(fmt::format("there is no script {}; see {} for the plots there are",
                            script.string(), harness::document_path("figures.md")));
  }
  if (!stream) {
    return fail(fmt::format("script {} cannot be read: {}", script.string(), std::strerror(errno)));
  }
  XAxis found = XAxis::any;
  for (std::string line; std::getline(stream, line);) {
    if (line == "# x-axis: numbers") found = XAxis::numbers;
    if (line == "# x-axis: numbers above 0") found = XAxis::positive_numbers;
  }
  if (stream.bad()) return fail(fmt::format("script {} cannot be read", script.string()));
  return found;
}

Expected<void> check_plots(const Specs& specs, const std::filesystem::path& plots) {
  for (const FigureSpec& spec : specs.figures) {
    const std::filesystem::path script = plots / (spec.plot + ".gp");
    const auto axis = x_axis_of(script);
    if (!axis) {
      return fail(fmt::format("{}: figure {}: {}", spec.plot_place, spec.id, axis.error().message));
    }
    if (*axis == XAxis::any || spec.data == FigureSpec::Data::timeline) continue;
    const bool combined = !spec.x_more.empty();
    const std::string& column = spec.at.empty() ? spec.x : spec.at;
    const Column* const drawn = spec.schema.find(column);
    if (!combined && (drawn == nullptr || drawn->kind == Column::Kind::number)) continue;
    return fail(fmt::format(
        "{}: figure {}: the x-axis of plot {} takes numbers, and x = {}; take a plot with bars, "
        "such as latency-over-workload, or a column of numbers",
        spec.plot_place, spec.id, spec.plot,
        combined ? "is a combination of columns" : fmt::format("{} has words", column)));
  }
  return {};
}

}  // namespace perdura::schema
