#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "harness/report/page_parts.h"
#include "harness/report/quantity.h"

namespace perdura::report {
namespace {

using Point = std::vector<std::string>;  // what tells it from others, by column
using BySystem = std::map<std::string, std::vector<double>>;  // the repetitions

/// At how many points a system has the least, and how many times that the next one has at each.
struct Lead {
  std::string system;
  std::vector<double> ratios;
  bool of_zero = false;  ///< the least is 0 somewhere: there is no ratio
};

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::map<Point, BySystem> values_of(const Points& points, std::string_view column) {
  std::map<Point, BySystem> values;
  for (std::size_t row = 0; row < points.size(); ++row) {
    const auto value = points.number(row, column);
    if (!points.valid(row) || points.text(row, "operation") != "all" || !value) continue;
    Point point;
    for (const std::string_view key : Points::key_columns()) {
      if (key != "system") point.push_back(points.text(row, key));
    }
    values[point][points.text(row, "system")].push_back(*value);
  }
  return values;
}

void add_point(const BySystem& systems, std::vector<Lead>& leads) {
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [system, repetitions] : systems) order.emplace_back(mean(repetitions), system);
  std::sort(order.begin(), order.end());
  if (order[0].first == order[1].first) return;  // none leads
  auto lead = std::find_if(leads.begin(), leads.end(),
                           [&](const Lead& each) { return each.system == order[0].second; });
  if (lead == leads.end()) lead = leads.insert(leads.end(), Lead{order[0].second, {}});
  if (order[0].first == 0) lead->of_zero = true;
  lead->ratios.push_back(order[1].first / order[0].first);
}

std::string times(const Lead& lead) {
  if (lead.of_zero) return "";
  const auto [least, most] = std::minmax_element(lead.ratios.begin(), lead.ratios.end());
  const std::string low = shown_number(*least);
  const std::string high = shown_number(*most);
  return fmt::format(" (the next: {}{} times as much)", low, low == high ? "" : " to " + high);
}

}  // namespace

std::string lead_sentence(const ResultFolder& folder, std::string_view column) {
  const Points& points = folder.points;
  if (points.size() == 0 || !folder.unfinished().empty()) return "";
  std::set<std::string> systems;
  for (std::size_t row = 0; row < points.size(); ++row) systems.insert(points.text(row, "system"));
  if (systems.size() < 2) return "";
  std::size_t shared = 0;
  std::vector<Lead> leads;
  for (const auto& [point, by_system] : values_of(points, column)) {
    if (by_system.size() != systems.size()) continue;
    ++shared;
    add_point(by_system, leads);
  }
  if (leads.empty()) return "";
  std::stable_sort(leads.begin(), leads.end(), [](const Lead& left, const Lead& right) {
    return left.ratios.size() > right.ratios.size();
  });
  std::vector<std::string> parts;
  for (const Lead& lead : leads) {
    const std::string how_often = parts.empty()
                                      ? fmt::format("{} of the {} points that {} systems share",
                                                    lead.ratios.size(), shared, systems.size())
                                      : fmt::to_string(lead.ratios.size());
    parts.push_back(
        fmt::format("{} at {}{}", folder.specs.systems.shown(lead.system), how_often, times(lead)));
  }
  const Quantity quantity = quantity_of(column);
  const bool several = quantity.noun.find("bytes") != std::string::npos;
  return fmt::format("{}, {} {} least with {}.", where(origin_of(points, 0)), quantity.noun,
                     several ? "are" : "is", listed(parts));
}

}  // namespace perdura::report
