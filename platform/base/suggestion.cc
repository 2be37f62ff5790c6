#include "platform/base/suggestion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

namespace perdura {
namespace {

char lower(char letter) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
}

// The number of letters that have to be added, removed, replaced or swapped with their neighbor.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> steps(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      std::size_t& least = steps[i][j];
      if (i == 0 || j == 0) {
        least = i + j;
        continue;
      }
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      least = std::min(
          {steps[i - 1][j] + 1, steps[i][j - 1] + 1, steps[i - 1][j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                           lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) least = std::min(least, steps[i - 2][j - 2] + 1);
    }
  }
  return steps[a.size()][b.size()];
}

// Longer names are not compared, since they are not typing errors.
constexpr std::size_t kLongest = 100;

}  // namespace

std::string_view nearest(std::string_view name, std::span<const std::string_view> known) {
  if (name.size() < 2 || name.size() > kLongest) return {};
  // Up to a third of the letters may be wrong, at least one and at most three.
  std::size_t least = std::min<std::size_t>((name.size() + 2) / 3, 3) + 1;
  std::string_view found;
  for (const std::string_view each : known) {
    const std::size_t apart = each.starts_with(name) && name.size() > 2 ? 1 : distance(name, each);
    if (apart >= least || apart >= each.size()) continue;
    least = apart;
    found = each;
  }
  return found;
}

const std::string_view* mistyped(std::span<const std::string_view> names,
                                 std::span<const std::string_view> known) {
  const std::string_view* first = nullptr;
  for (const std::string_view& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (!nearest(name, known).empty()) return &name;
    if (first == nullptr) first = &name;
  }
  return first;
}

std::string unknown_name(std::string_view noun, std::string_view name,
                         std::span<const std::string_view> known, std::string_view where) {
  const std::string_view meant = nearest(name, known);
  return fmt::format("unknown {} '{}'{}{}; known are: {}", noun, name, where,
                     meant.empty() ? "" : fmt::format(" (did you mean '{}'?)", meant),
                     known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
}

std::string unknown_name(std::string_view noun, std::string_view name,
                         std::span<const std::string> known) {
  const std::vector<std::string_view> views(known.begin(), known.end());
  return unknown_name(noun, name, views);
}

}  // namespace perdura
