// Read access to the files below the root of a host, or of a copy of one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace perdura::bench {

class Tree {
 public:
  explicit Tree(std::filesystem::path root) : root_(std::move(root)) {}

  std::filesystem::path at(std::string_view path) const { return root_ / path; }
  const std::filesystem::path& root() const { return root_; }
  bool has(std::string_view path) const;
  // The whole contents of a file; nullopt if it is missing or may not be read.
  std::optional<std::string> read(std::string_view path) const;
  // The first line of a file, with leading and trailing spaces removed; empty if there is none.
  std::string line(std::string_view path) const;
  std::optional<long long> number(std::string_view path) const;
  // The sorted names of those entries of a folder that begin with `prefix`.
  std::vector<std::string> names(std::string_view folder, std::string_view prefix = "") const;

 private:
  std::filesystem::path root_;
};

}  // namespace perdura::bench
