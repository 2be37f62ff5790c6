#include "harness/config/section.h"

#include <fmt/format.h>

#include <algorithm>

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

double Section::share_of(const toml::node& node, std::string_view key) const {
  const auto value = node.value_exact<double>();
  if (!value || !(*value > 0 && *value <= 1)) {
    wrong(node, key, "must be a decimal number above 0, at most 1, such as 0.02");
  }
  return *value;
}

bool Section::flag_of(const toml::node& node, std::string_view key) const {
  const auto value = node.value_exact<bool>();
  if (!value) wrong(node, key, "must be true or false");
  return *value;
}

void Section::wrong(const toml::node& node, std::string_view key, std::string_view what) const {
  throw UsageError(
      fmt::format("{}: {}{} {}", document_.where(node.source()), key, in_section(name_), what));
}

std::string join_names(std::span<const std::string_view> names) { return join(names); }
std::string join_names(std::span<const std::string> names) { return join(names); }

}  // namespace perdura::harness
