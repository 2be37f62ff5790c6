// Parameters of every type: what a table declares decides which values there are.
#include "platform/base/parameter.h"

#include <gtest/gtest.h>

#include <array>
#include <stdexcept>

#include "platform/base/parameter_values.h"

namespace perdura {
namespace {

constexpr std::array<std::string_view, 3> kWords{"a", "b", "c"};
constexpr Parameter kTable[] = {
    {.name = "count", .type = Count{1, 5}, .usual = 2},
    {.name = "one", .type = Count{1, 1}},
    {.name = "share", .type = Share{}},
    {.name = "real", .type = Real{-1, 2.5}, .usual = 0.5},
    {.name = "flag", .type = Flag{}, .usual = false},
    {.name = "word", .type = OneOf{kWords}, .usual = "a"},
    {.name = "name", .type = Name{}},
};

std::string problem(std::string_view name, const ParameterValue& value) {
  return find_parameter(kTable, name)->problem_with(value);
}

TEST(Parameter, TakesTheValuesOfItsTypeAndRange) {
  for (const int value : {1, 5}) EXPECT_EQ(problem("count", value), "");
  for (const double value : {0.001, 1.0}) EXPECT_EQ(problem("share", value), "");
  for (const double value : {-1.0, 2.5}) EXPECT_EQ(problem("real", value), "");
  EXPECT_EQ(problem("real", 2), "") << "2 is 2.0";
  EXPECT_EQ(problem("flag", true), "");
  EXPECT_EQ(problem("flag", 0), "") << "as flags were written before";
  EXPECT_EQ(problem("word", "b"), "");
  EXPECT_EQ(problem("name", "x"), "");
}

TEST(Parameter, SaysWhatIsWrongWithAllOthers) {
  for (const ParameterValue& value :
       {ParameterValue(0), ParameterValue(6), ParameterValue(2.0), ParameterValue("2")}) {
    EXPECT_EQ(problem("count", value), "must be a whole number from 1 to 5");
  }
  EXPECT_EQ(problem("one", 2), "must be 1");
  for (const double value : {0.0, -0.5, 1.001}) {
    EXPECT_EQ(problem("share", value), "must be a decimal number above 0, at most 1, such as 0.02");
  }
  EXPECT_EQ(problem("real", 2.6), "must be a decimal number from -1 to 2.5");
  EXPECT_EQ(problem("flag", 2), "must be true or false");
  EXPECT_EQ(problem("flag", "true"), "must be true or false");
  EXPECT_EQ(problem("word", "d"), "must be \"a\", \"b\" or \"c\"");
  EXPECT_EQ(problem("word", 1), "must be text in quotes");
  EXPECT_EQ(problem("name", ""), "must not be empty");
}

TEST(ParameterValues, AreWhatWasGivenElseWhatIsUsual) {
  ParameterValues values(kTable);
  EXPECT_EQ(values.number("count"), 2U);
  EXPECT_FALSE(values.given("count"));
  EXPECT_FALSE(values.number_if_given("count"));
  values.set("count", 4, "x.toml:3");
  EXPECT_EQ(values.number("count"), 4U);
  EXPECT_EQ(values.number_if_given("count"), 4U);
  EXPECT_EQ(values.where("count"), "x.toml:3");
  values.unset("count");
  EXPECT_EQ(values.number("count"), 2U);
  EXPECT_EQ(values.real("real"), 0.5);
  EXPECT_FALSE(values.flag("flag"));
  EXPECT_EQ(values.text("word"), "a");
  EXPECT_EQ(values.text("name"), "");
}

TEST(ParameterValues, HaveTheirDeclaredType) {
  ParameterValues values(kTable);
  values.set("flag", 1);
  EXPECT_TRUE(values.flag("flag"));
  EXPECT_EQ(values.to_text("flag"), "true");
  values.set("real", 2);
  EXPECT_EQ(values.real("real"), 2.0);
  EXPECT_EQ(values.to_text("share"), "");
  EXPECT_EQ(ParameterValue(1), ParameterValue(true));
  EXPECT_FALSE(ParameterValue(0) == ParameterValue(true));
  EXPECT_FALSE(ParameterValue(1) == ParameterValue("1"));
}

// A typing error in a name is found by whatever test comes by.
TEST(ParameterValues, OfANameThatIsNotDeclaredAreAMistakeOfTheProgram) {
  ParameterValues values(kTable);
  EXPECT_THROW(values.number("counts"), std::logic_error);
  EXPECT_THROW(values.set("counts", 1), std::logic_error);
  EXPECT_THROW(values.given("counts"), std::logic_error);
  EXPECT_THROW(values.text("count"), std::logic_error);
  EXPECT_THROW(values.number("one"), std::logic_error) << "neither given nor usual";
  EXPECT_FALSE(values.declares("counts"));
}

}  // namespace
}  // namespace perdura
