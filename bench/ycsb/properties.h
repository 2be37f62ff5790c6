#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "bench/ycsb/error.h"

namespace perdura::ycsb {

// The contents of a property file in Java's .properties format, in which YCSB describes workloads.
// It supports comments (# and !), key=value, key:value, key value, continuation by a backslash at
// the end of a line, and the escapes \t \n \r \f \uXXXX \<any other character>.
//
// Two departures from Java: white space at the end of a value is dropped (Java keeps it, and YCSB
// then fails on numbers), and text is UTF-8. As in Java, a key's last entry counts.
class Properties {
 public:
  struct SourcedValue {
    std::string value;
    std::string where;  // "file:line", or the text given to set(); for messages
  };

  // `name` is the file's name in messages.
  static tl::expected<Properties, Error> parse(std::string_view text, std::string_view name);
  static tl::expected<Properties, Error> read_file(const std::filesystem::path& path);

  // Adds or replaces one property, such as an argument of the command line.
  void set(std::string key, std::string value, std::string where);

  // Null when the key is absent. Valid until the key is set again.
  const SourcedValue* find(std::string_view key) const;

  const std::map<std::string, SourcedValue, std::less<>>& entries() const { return entries_; }

 private:
  std::map<std::string, SourcedValue, std::less<>> entries_;
};

}  // namespace perdura::ycsb
