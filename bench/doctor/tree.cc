#include "bench/doctor/tree.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <system_error>

namespace perdura::bench {

namespace fs = std::filesystem;

bool Tree::has(std::string_view path) const {
  std::error_code none;
  return fs::exists(at(path), none);
}

std::optional<std::string> Tree::read(std::string_view path) const {
  std::error_code none;
  if (!fs::is_regular_file(at(path), none)) return std::nullopt;
  std::ifstream input(at(path), std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(input), std::istreambuf_iterator<char>()};
  if (!input.good() && bytes.empty()) return std::nullopt;
  return bytes;
}

std::string Tree::line(std::string_view path) const {
  std::ifstream input(at(path), std::ios::binary);
  std::string line;
  std::getline(input, line);
  constexpr std::string_view kSpaces = " \t\r";
  const std::size_t begin = line.find_first_not_of(kSpaces);
  if (begin == std::string::npos) return "";
  return line.substr(begin, line.find_last_not_of(kSpaces) - begin + 1);
}

std::optional<long long> Tree::number(std::string_view path) const {
  const std::string text = line(path);
  long long value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string> Tree::names(std::string_view folder, std::string_view prefix) const {
  std::vector<std::string> result;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(at(folder), none)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix)) result.push_back(name);
  }
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace perdura::bench
