// The parameters of a point: what [workload] may set and [matrix] may vary.
#pragma once

#include <span>
#include <string_view>
#include <variant>

#include "harness/config/experiment.h"
#include "harness/config/section.h"

namespace perdura::harness {

struct Parameter {
  using Number = std::uint64_t PointSettings::*;
  using OptionalNumber = std::optional<std::uint64_t> PointSettings::*;
  using Share = std::optional<double> PointSettings::*;  // above 0, at most 1
  using Name = Located PointSettings::*;
  struct Completion {
    bool server;
    bool client;
  };
  using Flag = bool PointSettings::*;  // its values are 0 and 1
  struct Choice {
    std::string PointSettings::*text;
    std::span<const std::string_view> values;
  };

  std::string_view name;
  std::variant<Number, OptionalNumber, Share, Name, Completion, Flag, Choice> target;
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  // Whether points.csv has a column for it. Without one, rows that differ in nothing else could not
  // be told apart, so it cannot be varied.
  bool in_results = true;
};

std::span<const Parameter> parameters();
// Null if there is none of that name.
const Parameter* find_parameter(std::string_view name);

// Reads one value of the parameter; throws UsageError.
Axis::Value read_value(const Section& section, const toml::node& node, const Parameter& parameter,
                       const std::string& where);

// Sets it in a point.
void assign(const Parameter& parameter, const Axis::Value& value, PointSettings& point);

}  // namespace perdura::harness
