#include <fmt/format.h>

#include <algorithm>

#include "explore/explanation/diagram.h"

namespace perdura::explore {

namespace {

constexpr std::size_t kTimeWidth = 10;
constexpr std::size_t kGap = 2;

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

std::string as_text(const Diagram& diagram) {
  std::vector<std::size_t> begins;  // where each column begins
  std::size_t end = kTimeWidth + kGap;
  for (std::size_t column = 0; column < diagram.columns.size(); ++column) {
    std::size_t width = diagram.columns[column].size();
    for (const Diagram::Row& row : diagram.rows) {
      if (row.column == column) width = std::max(width, row.text.size());
    }
    begins.push_back(end);
    end += width + kGap;
  }
  std::string text = diagram.title + "\n\n";
  std::string heading = fmt::format("{:>{}}", "time, us", kTimeWidth);
  for (std::size_t column = 0; column < diagram.columns.size(); ++column) {
    heading.resize(begins[column], ' ');
    heading += diagram.columns[column];
  }
  text += without_trailing_spaces(heading);
  for (const Diagram::Row& row : diagram.rows) {
    std::string line =
        row.at ? fmt::format("{:>{}.3f}", to_microseconds(row.at->time_since_epoch()), kTimeWidth)
               : std::string(kTimeWidth, ' ');
    const bool for_all = row.column == Diagram::kAllColumns;
    line.resize(for_all ? kTimeWidth + kGap : begins[row.column], ' ');
    line += row.tone == Diagram::Tone::failure ? fmt::format("==== {} ====", row.text) : row.text;
    text += without_trailing_spaces(line);
  }
  text += "\n";
  for (const std::string& conclusion : diagram.conclusions) text += conclusion + "\n";
  return text;
}

}  // namespace perdura::explore
