#include "harness/schema/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/text/whole_file.h"
#include "platform/base/json.h"

namespace perdura::schema {
namespace {

const Column* in(std::span<const Column> columns, std::string_view name) {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const Column& column) { return column.name == name; });
  return found == columns.end() ? nullptr : &*found;
}

}  // namespace

Schema::Schema() : Schema(std::span<const Column>()) {}

Schema::Schema(std::span<const Column> declared)
    : kept_(std::make_shared<Kept>()), columns_(point_columns().begin(), point_columns().end()) {
  for (const Column& column : declared) {
    if (in_points(column.name)) continue;
    columns_.push_back({.name = keep(column.name),
                        .kind = column.kind,
                        .shown = {keep(column.shown.noun), keep(column.shown.axis),
                                  keep(column.shown.unit), column.shown.scale},
                        .role = column.role,
                        .better = column.better,
                        .may_be_negative = column.may_be_negative,
                        .usual = keep(column.usual)});
  }
}

std::string_view Schema::keep(std::string_view text) { return kept_->texts.emplace_back(text); }

bool Schema::in_points(std::string_view name) const { return in(columns_, name) != nullptr; }

std::vector<Column> Schema::identity() const {
  std::vector<Column> columns(identity_columns().begin(), identity_columns().end());
  for (const Column& column : declared()) {
    if (column.identifies()) columns.push_back(column);
  }
  return columns;
}

const Column* Schema::find(std::string_view name) const {
  const Column* const found = in(columns_, name);
  return found == nullptr ? find_column(name) : found;
}

Quantity Schema::quantity(std::string_view name) const {
  const Column* const known = find(name);
  return known == nullptr ? Quantity{name, name, ""} : known->shown;
}

void Schema::set_words(std::string_view column, std::span<const Spelling> words) {
  std::vector<Spelling>& kept = kept_->words.emplace_back();
  for (const auto& [value, shown] : words) kept.push_back({keep(value), keep(shown)});
  const auto found = std::find_if(columns_.begin(), columns_.end(),
                                  [&](const Column& each) { return each.name == column; });
  found->words = kept;
}

std::string Schema::shown(std::string_view column, std::string_view value) const {
  if (column == "workload") return shown_workload(value);
  if (const Column* const known = find(column)) {
    for (const auto& [word, shown] : known->words) {
      if (word == value) return std::string(shown);
    }
  }
  return shown_name(value);
}

Json Schema::words_to_json() const {
  auto json = Json::object();
  for (const Column& column : columns_) {
    const Column* const everywhere = find_column(column.name);
    if (everywhere != nullptr && everywhere->words.data() == column.words.data()) continue;
    for (const auto& [value, shown] : column.words) {
      json[std::string(column.name)][std::string(value)] = shown;
    }
  }
  return json;
}

Json Schema::to_json() const {
  auto json = Json::array();
  for (const Column& column : declared()) {
    Json& description =
        json.push_back({{"name", column.name},
                        {"noun", column.shown.noun},
                        {"title", column.shown.axis},
                        {"unit", column.shown.unit},
                        {"scale", column.shown.scale},
                        {"text", column.kind == Column::Kind::text},
                        {"identifies", column.identifies()},
                        {"better", column.better == Column::Better::unknown ? ""
                                   : column.better == Column::Better::less  ? "less"
                                                                            : "more"}});
    if (column.may_be_negative) description["may_be_negative"] = true;
    if (!column.usual.empty()) description["usual"] = column.usual;
  }
  return json;
}

Expected<Schema> Schema::beside(const std::filesystem::path& file) {
  const std::filesystem::path manifest = file.parent_path() / "manifest.json";
  const auto text = harness::read_whole(manifest);
  if (!text) return Schema();
  // Errors in the manifest are reported by readers that need all of it.
  const auto document = Json::parse_or_null(*text);
  if (!document.is_object()) return Schema();
  std::deque<std::string> texts;
  std::vector<Column> declared;
  try {
    for (const auto& entry : document.value("columns", Json::array())) {
      const auto kept = [&](const char* key) -> std::string_view {
        return texts.emplace_back(entry.at(key).get<std::string>());
      };
      const std::string better = entry.at("better").get<std::string>();
      declared.push_back(
          {.name = kept("name"),
           .kind = entry.at("text").get<bool>() ? Column::Kind::text : Column::Kind::number,
           .shown = {kept("noun"), kept("title"), kept("unit"), entry.at("scale").get<double>()},
           .role = entry.at("identifies").get<bool>() ? Column::Role::parameter
                                                      : Column::Role::measured,
           .better = better == "less"   ? Column::Better::less
                     : better == "more" ? Column::Better::more
                                        : Column::Better::unknown,
           .may_be_negative = entry.value("may_be_negative", false),
           .usual = entry.contains("usual") ? kept("usual") : ""});
    }
    Schema schema(declared);
    for (const auto& [column, shown] :
         document.value("words", std::map<std::string, std::map<std::string, std::string>>())) {
      if (!schema.in_points(column)) continue;
      std::vector<Spelling> words;
      for (const auto& [value, title] : shown) words.push_back({value, title});
      schema.set_words(column, words);
    }
    return schema;
  } catch (const JsonError&) {
    return fail(
        fmt::format("{}: \"columns\" does not describe columns, or \"words\" values; run the "
                    "experiment again, or "
                    "restore the file",
                    manifest.string()));
  }
}

Schema parameter_columns(std::span<const Parameter> table) {
  std::deque<std::string> texts;
  std::vector<Column> columns;
  for (const Parameter& parameter : table) {
    if (!parameter.identifies) continue;
    const auto* const real = std::get_if<Real>(&parameter.type);
    const bool number = real != nullptr || std::holds_alternative<Count>(parameter.type) ||
                        std::holds_alternative<Share>(parameter.type);
    const bool usual = parameter.usual.exists();
    texts.push_back(usual ? parameter.usual.value().to_text() : "");
    columns.push_back({.name = parameter.name,
                       .kind = number ? Column::Kind::number : Column::Kind::text,
                       .shown = {parameter.noun, parameter.title, parameter.unit},
                       .role = Column::Role::parameter,
                       .may_be_negative = real != nullptr && real->least < 0,
                       .usual = texts.back()});
  }
  return Schema(columns);
}

}  // namespace perdura::schema
