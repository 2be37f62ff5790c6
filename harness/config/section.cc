#include "harness/config/section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/text/suggestion.h"
#include "platform/base/error.h"

namespace perdura::harness {
namespace {

std::string in_section(const std::string& name) {
  return name.empty() ? "" : fmt::format(" in [{}]", name);
}

template <class Names>
std::string join(const Names& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

void Section::allow_only(std::span<const std::string_view> known) const {
  for (const auto& [key, node] : table_) {
    if (std::find(known.begin(), known.end(), key.str()) == known.end()) {
      throw UsageError(fmt::format("{}: {}", document_.where(key.source()),
                                   unknown_name("key", key.str(), known, in_section(name_))));
    }
  }
}

std::string Section::where(std::string_view key) const {
  const toml::node* node = table_.get(key);
  return document_.where(node == nullptr ? table_.source() : node->source());
}

std::optional<std::string> Section::text(std::string_view key) const {
  const toml::node* node = table_.get(key);
  if (node == nullptr) return std::nullopt;
  return text_of(*node, key);
}

std::optional<std::uint64_t> Section::number(std::string_view key, std::uint64_t least,
                                             std::uint64_t most) const {
  const toml::node* node = table_.get(key);
  if (node == nullptr) return std::nullopt;
  return number_of(*node, key, least, most);
}

std::optional<Section> Section::section(std::string_view key) const {
  const toml::node* node = table_.get(key);
  if (node == nullptr) return std::nullopt;
  if (!node->is_table()) wrong(*node, key, "must be a section");
  return Section(document_, *node->as_table(),
                 name_.empty() ? std::string(key) : fmt::format("{}.{}", name_, key));
}

std::string Section::text_of(const toml::node& node, std::string_view key) const {
  const auto value = node.value_exact<std::string>();
  if (!value) wrong(node, key, "must be text in quotes");
  return *value;
}

std::uint64_t Section::number_of(const toml::node& node, std::string_view key, std::uint64_t least,
                                 std::uint64_t most) const {
  const auto value = node.value_exact<std::int64_t>();
  if (!value || *value < 0 || static_cast<std::uint64_t>(*value) < least ||
      static_cast<std::uint64_t>(*value) > most) {
    wrong(node, key, fmt::format("must be a whole number from {} to {}", least, most));
  }
  return static_cast<std::uint64_t>(*value);
}

bool Section::flag_of(const toml::node& node, std::string_view key) const {
  const auto value = node.value_exact<bool>();
  if (!value) wrong(node, key, "must be true or false");
  return *value;
}

ParameterValue Section::value_of(const toml::node& node, const Parameter& parameter) const {
  const auto value = [&]() -> std::optional<ParameterValue> {
    if (const auto text = node.value_exact<std::string>()) return *text;
    if (const auto flag = node.value_exact<bool>()) return *flag;
    if (const auto real = node.value_exact<double>()) return *real;
    const auto number = node.value_exact<std::int64_t>();
    if (!number) return std::nullopt;
    // Whole numbers are parsed as unsigned, so a negative one is kept as a decimal number.
    return *number < 0 ? ParameterValue(static_cast<double>(*number)) : ParameterValue(*number);
  }();
  // A list or a section has no valid type; NaN stands for it, since it fits no parameter.
  const std::string problem = parameter.problem_with(value.value_or(ParameterValue(std::nan(""))));
  if (!problem.empty()) wrong(node, parameter.name, problem);
  return parameter.of_type(*value);
}

void Section::wrong(const toml::node& node, std::string_view key, std::string_view what) const {
  throw UsageError(
      fmt::format("{}: {}{} {}", document_.where(node.source()), key, in_section(name_), what));
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.front() != '.' && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

std::string join_names(std::span<const std::string_view> names) { return join(names); }
std::string join_names(std::span<const std::string> names) { return join(names); }

}  // namespace perdura::harness
