// A driver and a small experiment of it as text, for tests of its points.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/config/document.h"
#include "harness/config/experiment.h"
#include "harness/run/point.h"
#include "platform/base/error.h"
#include "tests/support/platforms.h"

namespace perdura::bench {

class DriverUnderTest {
 public:
  // Both outlive this object.
  DriverUnderTest(const harness::Driver& driver, std::string_view text)
      : driver_(driver), text_(text) {}

  harness::Declarations declarations() const {
    const harness::Driver* const drivers[] = {&driver_};
    return harness::declarations_of(drivers);
  }

  // `changes`: "SECTION.KEY=VALUE", as of --set.
  std::vector<harness::Point> plan(const std::vector<std::string>& changes) const {
    std::vector<harness::Override> overrides;
    for (const std::string& change : changes) overrides.push_back(harness::parse_override(change));
    const harness::Experiment experiment = harness::read_experiment(
        harness::Document::parse(std::string(text_), "x.toml", overrides), declarations());
    return harness::plan_points(experiment, harness::Locations({PERDURA_SOURCE_DIR}), driver_, 1);
  }

  // What the user is told; "no error" if the changes are accepted.
  std::string refusal(const std::vector<std::string>& changes) const {
    try {
      plan(changes);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  }

  harness::Measurement measure(const harness::Point& point,
                               const std::string& platform_name) const {
    const auto platform = perdura::test::make_platform(platform_name, point.roles.node_count());
    harness::Measurement result = driver_.run(*platform, point);
    driver_.conclude(point, result);
    return result;
  }

 private:
  const harness::Driver& driver_;
  std::string_view text_;
};

}  // namespace perdura::bench
