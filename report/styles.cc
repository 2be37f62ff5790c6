#include "report/styles.h"

#include <map>
#include <set>
#include <string>

namespace perdura::report {
namespace {

constexpr std::size_t kStyles = 8;  // the number of styles in plots/style.gp

/// The keys are positions in the order of the report.
using Beside = std::map<std::size_t, std::set<std::size_t>>;

std::size_t style_of(std::size_t place, const std::set<std::size_t>& taken) {
  for (std::size_t i = 0; i < kStyles; ++i) {
    const std::size_t style = (place + i) % kStyles;
    if (!taken.contains(style)) return style;
  }
  return place % kStyles;
}

}  // namespace

void assign_styles(std::vector<Section>& sections) {
  std::map<std::string, Beside> columns;
  for (const Section& section : sections) {
    for (const FigureResult& figure : section.figures) {
      Beside& beside = columns[figure.spec.series];
      for (const Series& series : figure.data.series) {
        for (const Series& other : figure.data.series) beside[series.order].insert(other.order);
      }
    }
  }
  std::map<std::string, std::map<std::size_t, std::size_t>> styles;
  for (const auto& [column, beside] : columns) {
    auto& assigned = styles[column];
    for (const auto& [place, others] : beside) {
      std::set<std::size_t> taken;
      for (const std::size_t other : others) {
        if (const auto found = assigned.find(other); found != assigned.end()) {
          taken.insert(found->second);
        }
      }
      assigned[place] = style_of(place, taken);
    }
  }
  for (Section& section : sections) {
    for (FigureResult& figure : section.figures) {
      for (Series& series : figure.data.series) {
        series.style = styles[figure.spec.series][series.order];
      }
    }
  }
}

}  // namespace perdura::report
