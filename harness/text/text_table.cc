#include "harness/text/text_table.h"

#include <algorithm>
#include <vector>

namespace perdura::harness {
namespace {

// The width in UTF-8 characters: all bytes except continuation bytes.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0U) != 0x80U; }));
}

}  // namespace

std::string text_table(const std::function<void(const AddLine& add)>& lines) {
  std::vector<std::size_t> widths;
  lines([&](std::span<const std::string> cells) {
    widths.resize(std::max(widths.size(), cells.size()));
    for (std::size_t i = 0; i < cells.size(); ++i) {
      widths[i] = std::max(widths[i], width_of(cells[i]));
    }
  });
  std::string text;
  lines([&](std::span<const std::string> cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      text += cells[i];
      text.append(widths[i] - width_of(cells[i]) + 2, ' ');
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  });
  return text;
}

}  // namespace perdura::harness
