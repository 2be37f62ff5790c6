#include "platform/base/toml_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "platform/base/error.h"
#include "platform/base/path_kind.h"
#include "platform/base/suggestion.h"

namespace perdura {
namespace {

std::string in_section(const std::string& name) {
  return name.empty() ? "" : fmt::format(" in [{}]", name);
}

std::optional<ParameterValue> plain_value(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto flag = node.value_exact<bool>()) return *flag;
  if (const auto real = node.value_exact<double>()) return *real;
  const auto number = node.value_exact<std::int64_t>();
  if (!number) return std::nullopt;
  // Whole numbers are unsigned, so a negative one is kept as a decimal number.
  return *number < 0 ? ParameterValue(static_cast<double>(*number)) : ParameterValue(*number);
}

}  // namespace

std::string words_for(const toml::node& node) {
  if (const auto whole = node.value_exact<std::int64_t>()) return fmt::to_string(*whole);
  if (const auto real = node.value_exact<double>()) return fmt::to_string(*real);
  if (const auto flag = node.value_exact<bool>()) return *flag ? "true" : "false";
  if (const auto text = node.value_exact<std::string>()) return fmt::format("\"{}\"", *text);
  if (node.is_array()) return "a list";
  return node.is_table() ? "a section" : "a time";
}

void TomlSection::allow_only(std::span<const std::string_view> known) const {
  std::vector<std::string_view> keys;
  for (const auto& [key, node] : *table_) keys.push_back(key.str());
  const std::string_view* const wrong = mistyped(keys, known);
  if (wrong == nullptr) return;
  throw UsageError(
      fmt::format("{}: {}", where(*wrong), unknown_name("key", *wrong, known, in_section(name_))));
}

std::string TomlSection::where(std::string_view key) const {
  const toml::node* const node = table_->get(key);
  return node == nullptr ? where() : where(*node);
}

std::optional<std::string> TomlSection::text(std::string_view key) const {
  const toml::node* const node = table_->get(key);
  if (node == nullptr) return std::nullopt;
  return text_of(*node, key);
}

std::optional<std::uint64_t> TomlSection::number(std::string_view key, std::uint64_t least,
                                                 std::uint64_t most) const {
  const toml::node* const node = table_->get(key);
  if (node == nullptr) return std::nullopt;
  return number_of(*node, key, least, most);
}

std::optional<bool> TomlSection::flag(std::string_view key) const {
  const toml::node* const node = table_->get(key);
  if (node == nullptr) return std::nullopt;
  return flag_of(*node, key);
}

std::optional<ParameterValue> TomlSection::value(const Parameter& parameter) const {
  const toml::node* const node = table_->get(parameter.name);
  if (node == nullptr) return std::nullopt;
  return value_of(*node, parameter);
}

void TomlSection::read(ParameterValues& values) const {
  for (const Parameter& parameter : values.table()) {
    if (const auto given = value(parameter)) {
      values.set(parameter.name, *given, where(parameter.name));
    }
  }
}

void TomlSection::read(std::span<const Parameter> table, GivenParameters& given) const {
  for (const Parameter& parameter : table) {
    if (const auto its = value(parameter)) given[std::string(parameter.name)] = *its;
  }
}

std::optional<TomlSection> TomlSection::section(std::string_view key) const {
  const toml::node* const node = table_->get(key);
  if (node == nullptr) return std::nullopt;
  std::string name = name_.empty() ? std::string(key) : fmt::format("{}.{}", name_, key);
  if (!node->is_table()) wrong_value(*node, key, fmt::format("must be a section, [{}]", name));
  return TomlSection(where_, *node->as_table(), std::move(name));
}

std::vector<std::string> TomlSection::texts(std::string_view key) const {
  std::vector<std::string> found;
  const toml::node* const node = table_->get(key);
  if (node == nullptr) return found;
  if (!node->is_array()) wrong_value(*node, key, "must be a list of texts");
  for (const toml::node& item : *node->as_array()) found.push_back(text_of(item, key));
  return found;
}

std::vector<TomlSection> TomlSection::sections(std::string_view key) const {
  std::vector<TomlSection> found;
  const toml::node* const node = table_->get(key);
  if (node == nullptr) return found;
  const auto check = [&](const toml::node& each, bool fits) {
    if (!fits) wrong_value(each, key, fmt::format("must be written as [[{}]]", key));
  };
  check(*node, node->is_array());
  for (const toml::node& item : *node->as_array()) {
    check(item, item.is_table());
    found.emplace_back(where_, *item.as_table(), std::string(key));
  }
  return found;
}

std::string TomlSection::text_of(const toml::node& node, std::string_view key) const {
  const auto value = node.value_exact<std::string>();
  if (!value) wrong_value(node, key, "must be text in quotes");
  return *value;
}

std::uint64_t TomlSection::number_of(const toml::node& node, std::string_view key,
                                     std::uint64_t least, std::uint64_t most) const {
  const auto value = node.value_exact<std::int64_t>();
  if (!value || *value < 0 || static_cast<std::uint64_t>(*value) < least ||
      static_cast<std::uint64_t>(*value) > most) {
    wrong_value(node, key, fmt::format("must be a whole number from {} to {}", least, most));
  }
  return static_cast<std::uint64_t>(*value);
}

double TomlSection::real_of(const toml::node& node, std::string_view key, double least,
                            double most) const {
  const auto value = node.value<double>();
  // The comparison is written so that NaN fails it, too.
  if (!node.is_number() || !value || !(*value >= least && *value <= most)) {
    wrong_value(node, key, fmt::format("must be a number from {:g} to {:g}", least, most));
  }
  return *value;
}

bool TomlSection::flag_of(const toml::node& node, std::string_view key) const {
  const auto value = node.value_exact<bool>();
  if (!value) wrong_value(node, key, "must be true or false");
  return *value;
}

ParameterValue TomlSection::value_of(const toml::node& node, const Parameter& parameter) const {
  const auto value = plain_value(node);
  // A list or a section has no valid type; NaN stands for it, since it fits no parameter.
  const std::string problem = parameter.problem_with(value.value_or(ParameterValue(std::nan(""))));
  if (!problem.empty()) wrong_value(node, parameter.name, problem);
  return parameter.of_type(*value);
}

void TomlSection::wrong(const toml::node& node, std::string_view key, std::string_view what) const {
  throw UsageError(fmt::format("{}: {}{} {}", where(node), key, in_section(name_), what));
}

void TomlSection::missing(std::string_view key, std::string_view advice) const {
  wrong(*table_, key, fmt::format("is missing; {}", advice));
}

void TomlSection::wrong_value(const toml::node& node, std::string_view key,
                              std::string_view must) const {
  // "must not be empty" says by itself what the value is.
  if (must == "must not be empty") wrong(node, key, must);
  wrong(node, key, fmt::format("{}, but is {}", must, words_for(node)));
}

TomlFile TomlFile::read(const std::string& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  // A directory opens like a file, but cannot be read; and nothing can be read of an empty file.
  const bool read = stream && (text << stream.rdbuf());
  const bool is_empty = stream.is_open() && kind_of(file) == PathKind::file;
  if (!read && !is_empty) throw UsageError(fmt::format("{}: {}", file, not_a_file(file)));
  return parse(text.str(), file);
}

TomlFile TomlFile::parse(std::string text, std::string name) {
  if (text.empty()) throw UsageError(fmt::format("{}: is empty", name));
  TomlFile file;
  file.name_ = std::move(name);
  file.text_ = std::move(text);
  try {
    file.table_ = toml::parse(file.text_);
  } catch (const toml::parse_error& problem) {
    throw UsageError(
        fmt::format("{}:{}: {}", file.name_, problem.source().begin.line, problem.description()));
  }
  return file;
}

TomlSection TomlFile::top() const {
  const auto where = [name = name_](const toml::source_region& part) {
    return fmt::format("{}:{}", name, part.begin.line);
  };
  return {where, table_, ""};
}

}  // namespace perdura
