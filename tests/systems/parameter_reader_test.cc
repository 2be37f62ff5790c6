// A system's own parameters, read by its table alone.
#include "systems/parameter_reader.h"

#include <gtest/gtest.h>

#include <array>
#include <stdexcept>

namespace perdura::systems {
namespace {

constexpr std::array<std::string_view, 2> kOrders{"key", "age"};
constexpr Parameter kTable[] = {
    {.name = "slots", .type = Count{2, 64}, .usual = 8},
    {.name = "fill", .type = Share{}, .usual = 0.5},
    {.name = "eager", .type = Flag{}, .usual = false},
    {.name = "order", .type = OneOf{kOrders}, .usual = "key"},
    {.name = "spare", .type = Count{0, 100}},
};

std::string refusal(const GivenParameters& parameters) {
  try {
    const ParameterReader given("shelf", kTable, parameters);
  } catch (const ParameterError& error) {
    return error.parameter + "|" + error.what();
  }
  return "none";
}

TEST(ParameterReader, GivesWhatIsUsualUnlessSomethingElseWasGiven) {
  const ParameterReader usual("shelf", kTable, {});
  EXPECT_EQ(usual.number<std::uint32_t>("slots"), 8U);
  EXPECT_EQ(usual.real("fill"), 0.5);
  EXPECT_FALSE(usual.flag("eager"));
  EXPECT_EQ(usual.text("order"), "key");
  EXPECT_EQ(usual.number<std::uint64_t>("spare", 7), 7U) << "depends on others";
  const ParameterReader given(
      "shelf", kTable, {{"slots", 2}, {"fill", 1}, {"eager", 1}, {"order", "age"}, {"spare", 9}});
  EXPECT_EQ(given.number<std::uint32_t>("slots"), 2U);
  EXPECT_EQ(given.real("fill"), 1.0);
  EXPECT_TRUE(given.flag("eager"));
  EXPECT_EQ(given.text("order"), "age");
  EXPECT_EQ(given.number<std::uint64_t>("spare", 7), 9U);
}

TEST(ParameterReader, NamesTheParameterThatIsWrong) {
  EXPECT_EQ(refusal({{"slots", 65}}),
            "slots|shelf: slots is 65, but must be a whole number from 2 to 64");
  EXPECT_EQ(refusal({{"eager", 2}}), "eager|shelf: eager is 2, but must be true or false");
  EXPECT_EQ(refusal({{"order", "size"}}),
            "order|shelf: order is size, but must be \"key\" or \"age\"");
  EXPECT_EQ(refusal({{"slot", 3}}),
            "slot|shelf has no parameter 'slot'; it has slots, fill, eager, order, spare");
}

TEST(ParameterReader, HasNoOtherParametersThanTheTable) {
  const ParameterReader given("shelf", kTable, {});
  EXPECT_THROW(given.flag("eagre"), std::logic_error);
  EXPECT_THROW(given.number<std::uint64_t>("spare"), std::logic_error);
}

}  // namespace
}  // namespace perdura::systems
