#include "platform/faults/fault_plan.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "platform/base/error.h"

namespace perdura::faults {

namespace {

constexpr std::array<std::string_view, 3> kSteps{"before-post", "after-post", "at-completion"};

struct Unit {
  std::string_view name;
  std::int64_t picoseconds;
};
constexpr std::array<Unit, 4> kUnits{
    {{"ms", 1'000'000'000}, {"us", 1'000'000}, {"ns", 1'000}, {"ps", 1}}};

// Prints the time in the largest unit in which it is a whole number.
std::string text_of(Picoseconds time) {
  for (const Unit& unit : kUnits) {
    if (time.count() % unit.picoseconds == 0) {
      return fmt::format("{}{}", time.count() / unit.picoseconds, unit.name);
    }
  }
  return {};
}

std::string text_of(const TimeRange& range) {
  return fmt::format("{}..{}", text_of(range.least), text_of(range.most));
}

[[noreturn]] void refuse(std::string_view word, std::string_view why) {
  throw UsageError(fmt::format("fault plan: '{}': {}", word, why));
}

template <class Number>
Number number_of(std::string_view word, std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) refuse(word, "is not a number");
  return value;
}

double probability_of(std::string_view word, std::string_view text) {
  const auto value = number_of<double>(word, text);
  if (!(value >= 0 && value <= 1)) refuse(word, "a probability is 0 to 1");
  return value;
}

Picoseconds time_of(std::string_view word, std::string_view text) {
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.name)) continue;
    const auto count =
        number_of<std::int64_t>(word, text.substr(0, text.size() - unit.name.size()));
    if (count < 0) refuse(word, "a time is not negative");
    return Picoseconds(count * unit.picoseconds);
  }
  refuse(word, "a time ends in ps, ns, us or ms");
}

TimeRange range_of(std::string_view word, std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) refuse(word, "a range is LEAST..MOST");
  const TimeRange range{time_of(word, text.substr(0, dots)), time_of(word, text.substr(dots + 2))};
  if (range.least > range.most) refuse(word, "the least is more than the most");
  return range;
}

DeathStep step_of(std::string_view word, std::string_view text) {
  for (std::size_t i = 0; i < kSteps.size(); ++i) {
    if (text == kSteps[i]) return static_cast<DeathStep>(i);
  }
  refuse(word, "is before-post, after-post or at-completion");
}

}  // namespace

std::string FaultPlan::text() const {
  const FaultPlan usual;
  std::string line = fmt::format("seed={}", seed);
  const auto add = [&](std::string_view name, const std::string& value) {
    line += fmt::format(" {}={}", name, value);
  };
  if (lose != usual.lose) add("lose", fmt::format("{}", lose));
  if (lose_at != usual.lose_at) add("lose-at", fmt::format("{}", lose_at));
  if (hold != usual.hold) add("hold", fmt::format("{}", hold));
  if (!(held == usual.held)) add("held", text_of(held));
  if (duplicate != usual.duplicate) add("duplicate", fmt::format("{}", duplicate));
  if (!(slow == usual.slow)) add("slow", text_of(slow));
  if (die_at != usual.die_at) add("die-at", fmt::format("{}", die_at));
  if (die_when != usual.die_when) {
    add("die-when", std::string(kSteps[static_cast<std::size_t>(die_when)]));
  }
  if (die_after != usual.die_after) add("die-after", text_of(die_after));
  return line;
}

FaultPlan FaultPlan::parse(std::string_view text) {
  FaultPlan plan;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) refuse(word, "is not NAME=VALUE");
    const std::string_view name = word.substr(0, equals);
    const std::string_view value = word.substr(equals + 1);
    if (name == "seed") {
      plan.seed = number_of<std::uint64_t>(word, value);
    } else if (name == "lose") {
      plan.lose = probability_of(word, value);
    } else if (name == "lose-at") {
      plan.lose_at = number_of<std::uint64_t>(word, value);
    } else if (name == "hold") {
      plan.hold = probability_of(word, value);
    } else if (name == "held") {
      plan.held = range_of(word, value);
    } else if (name == "duplicate") {
      plan.duplicate = probability_of(word, value);
    } else if (name == "slow") {
      plan.slow = range_of(word, value);
    } else if (name == "die-at") {
      plan.die_at = number_of<std::uint64_t>(word, value);
    } else if (name == "die-when") {
      plan.die_when = step_of(word, value);
    } else if (name == "die-after") {
      plan.die_after = time_of(word, value);
    } else {
      refuse(word, "is not known");
    }
  }
  return plan;
}

}  // namespace perdura::faults
