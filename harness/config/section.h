// One section of an experiment while it is being read: typed access to its keys, with messages that
// name file, line, section and what is allowed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "harness/config/document.h"
#include "platform/base/parameter.h"

namespace perdura::harness {

class Section {
 public:
  // `name` as in the file, such as "workload"; empty for the top level.
  Section(const Document& document, const toml::table& table, std::string name)
      : document_(document), table_(table), name_(std::move(name)) {}

  // Throws UsageError if there is a key that is not among `known`.
  void allow_only(std::span<const std::string_view> known) const;

  bool has(std::string_view key) const { return table_.contains(key); }
  const toml::table& table() const { return table_; }
  std::string where(std::string_view key) const;

  // Each returns nullopt if the key is absent, and throws UsageError if its value has another type
  // or is out of range.
  std::optional<std::string> text(std::string_view key) const;
  std::optional<std::uint64_t> number(std::string_view key, std::uint64_t least,
                                      std::uint64_t most) const;
  std::optional<Section> section(std::string_view key) const;

  // The same for a TOML node that is not the value of a key, such as an item of a list.
  std::string text_of(const toml::node& node, std::string_view key) const;
  std::uint64_t number_of(const toml::node& node, std::string_view key, std::uint64_t least,
                          std::uint64_t most) const;
  bool flag_of(const toml::node& node, std::string_view key) const;
  // Reads a parameter's value with the type that its declaration asks for.
  ParameterValue value_of(const toml::node& node, const Parameter& parameter) const;

  // Throws UsageError with the place of the node, the key and the problem.
  [[noreturn]] void wrong(const toml::node& node, std::string_view key,
                          std::string_view what) const;

 private:
  const Document& document_;
  const toml::table& table_;
  std::string name_;
};

// True if the name can be used as a file name.
bool is_plain_name(std::string_view name);

// "a, b, c".
std::string join_names(std::span<const std::string_view> names);
std::string join_names(std::span<const std::string> names);

}  // namespace perdura::harness
