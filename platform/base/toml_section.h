// Reading of a TOML file that a user has written: an experiment, a site, a profile, or a shard's
// configuration. Each of its sections gives typed access to its keys and answers a mistake with
// one line that names the file, the line, the key, the section and what is allowed:
//
//   lab.toml:7: unknown key 'prot' in [verbs] (did you mean 'port'?); known are: device, port
//   lab.toml:7: port in [verbs] must be a whole number from 1 to 255, but is 0
//   lab.toml:7: node in [shards.left] is missing; give its number, node = ...
//   lab.toml:7: pm must be a section, [pm], but is 3
//
// All mistakes are UsageErrors, so a program that does not catch them ends with code 2.
#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "platform/base/parameter.h"
#include "platform/base/parameter_values.h"

namespace perdura {

// A value of a file in words: a single one as it may be written there, and of another kind
// "a list", "a section" or "a time".
std::string words_for(const toml::node& node);

// One table of a file while it is being read. The tables must outlive it.
class TomlSection {
 public:
  // Returns the origin of a part of the file, as in "lab.toml:12".
  using Where = std::function<std::string(const toml::source_region&)>;

  // `name` as in the file, such as "workload"; empty for the top level.
  TomlSection(Where where, const toml::table& table, std::string name)
      : where_(std::move(where)), table_(&table), name_(std::move(name)) {}

  const toml::table& table() const { return *table_; }
  const std::string& name() const { return name_; }
  bool has(std::string_view key) const { return table_->contains(key); }

  // Throws UsageError if there is a key that is not among `known`.
  void allow_only(std::span<const std::string_view> known) const;

  // The origin of a node, or of a key's value; of the section if it does not have the key.
  std::string where(const toml::node& node) const { return where_(node.source()); }
  std::string where(std::string_view key) const;
  std::string where() const { return where(*table_); }

  // Each returns nullopt if the key is absent, and throws UsageError if its value has another type
  // or is out of range.
  std::optional<std::string> text(std::string_view key) const;
  std::optional<std::uint64_t> number(std::string_view key, std::uint64_t least,
                                      std::uint64_t most) const;
  std::optional<bool> flag(std::string_view key) const;
  std::optional<ParameterValue> value(const Parameter& parameter) const;
  // The values that the section gives to the parameters of a table, with their places in
  // `values`; they replace those that were given before. Other keys are not looked at.
  void read(ParameterValues& values) const;
  void read(std::span<const Parameter> table, GivenParameters& given) const;
  std::optional<TomlSection> section(std::string_view key) const;
  // The items of a list of texts, and the sections [[key]]; none if the key is absent.
  std::vector<std::string> texts(std::string_view key) const;
  std::vector<TomlSection> sections(std::string_view key) const;

  // The same for a TOML node that is not the value of a key, such as an item of a list.
  std::string text_of(const toml::node& node, std::string_view key) const;
  std::uint64_t number_of(const toml::node& node, std::string_view key, std::uint64_t least,
                          std::uint64_t most) const;
  double real_of(const toml::node& node, std::string_view key, double least, double most) const;
  bool flag_of(const toml::node& node, std::string_view key) const;
  // Reads a parameter's value with the type that its declaration asks for.
  ParameterValue value_of(const toml::node& node, const Parameter& parameter) const;

  // Throw UsageError: the value of the key, at the place of the node, is wrong; the key is absent.
  // `advice` says what to write.
  [[noreturn]] void wrong(const toml::node& node, std::string_view key,
                          std::string_view what) const;
  [[noreturn]] void missing(std::string_view key, std::string_view advice) const;

 private:
  // wrong(), with the value.
  [[noreturn]] void wrong_value(const toml::node& node, std::string_view key,
                                std::string_view must) const;

  Where where_;
  const toml::table* table_;
  std::string name_;
};

// A file whose places are its name and the numbers of its lines.
class TomlFile {
 public:
  // Throws UsageError if the file cannot be read, is empty or is not TOML.
  static TomlFile read(const std::string& file);
  // The same for a text that is already in memory; `name` stands for the file in messages.
  static TomlFile parse(std::string text, std::string name);

  const std::string& text() const { return text_; }
  TomlSection top() const;

 private:
  std::string name_;
  std::string text_;
  toml::table table_;
};

}  // namespace perdura
