// A TOML file with the command line's overrides applied to its text, so that the text stored with
// the results is the file as its author wrote it, comments and order included, with the changes in
// place. Every part knows its origin: a line of the file or an argument of the command line.
#pragma once

#include <toml++/toml.h>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/config/override.h"
#include "platform/base/toml_section.h"

namespace perdura::harness {

class Document {
 public:
  // Throws UsageError, naming file and line or the override, if the file cannot be read, is not
  // TOML, or an override cannot be applied.
  static Document read(const std::filesystem::path& file, std::span<const Override> overrides = {});
  // The same for a text that is already in memory; `name` stands for the file in messages.
  static Document parse(std::string text, std::string name,
                        std::span<const Override> overrides = {});

  const toml::table& table() const { return table_; }
  // The top level, for reading key by key. This document must outlive it.
  TomlSection top() const;
  // The text, overrides applied.
  const std::string& text() const { return text_; }
  const std::string& name() const { return name_; }

  // The origin of a part: "experiments/x.toml:12", or the label of the override.
  std::string where(const toml::source_region& part) const;

 private:
  explicit Document(std::string name) : name_(std::move(name)) {}

  struct Line {
    std::string text;
    std::size_t number;  // line in the file; 0 if it comes from an override
    std::string label;   // name of the override; empty for a line of the file
  };

  void parse_lines();
  void apply(const Override& change);
  void replace(const toml::source_region& value, const Override& change);
  void insert(std::size_t before, const std::string& text, const Override& change);

  std::string name_;
  std::vector<Line> lines_;
  std::string text_;
  toml::table table_;
};

}  // namespace perdura::harness
