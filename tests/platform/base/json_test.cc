#include "platform/base/json.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace perdura {
namespace {

std::string problem_of(const std::function<void()>& what) {
  try {
    what();
  } catch (const JsonError& error) {
    return error.what();
  }
  return "none";
}

TEST(Json, WritesValuesOfEachKind) {
  const std::map<std::string, int> map{{"b", 2}, {"a", 1}};
  const Json value{{"null", nullptr},
                   {"flag", true},
                   {"least", std::numeric_limits<std::int64_t>::min()},
                   {"most", std::numeric_limits<std::uint64_t>::max()},
                   {"real", 0.1},
                   {"text", "\"\n\xc3\xbc"},
                   {"list", std::vector<std::string>{"x", "y"}},
                   {"pairs", std::vector<std::pair<std::string, std::string>>{{"k", "v"}}},
                   {"map", map},
                   {"nothing", Json::array()},
                   {"empty", Json::object()}};
  EXPECT_EQ(
      value.dump(),
      R"({"null":null,"flag":true,"least":-9223372036854775808,)"
      R"("most":18446744073709551615,"real":0.1,"text":"\"\n)"
      "\xc3\xbc"
      R"(","list":["x","y"],"pairs":[["k","v"]],"map":{"a":1,"b":2},"nothing":[],"empty":{}})");
  EXPECT_EQ(Json::parse(value.dump()), value);
  EXPECT_EQ(Json::parse(value.dump(2)), value);
}

TEST(Json, KeepsTheOrderOfMembersWhichDoesNotMatterToEquality) {
  Json value = Json::parse(R"({"z": 1, "a": {"y": 2, "b": 3}})");
  value["m"] = 4;
  EXPECT_EQ(value.dump(), R"({"z":1,"a":{"y":2,"b":3},"m":4})");
  EXPECT_EQ(value, Json::parse(R"({"a": {"b": 3, "y": 2}, "m": 4, "z": 1})"));
  EXPECT_NE(value, Json::parse(R"({"a": {"b": 3, "y": 2}, "m": 4, "z": 2})"));
  EXPECT_NE(value, Json::parse(R"({"a": {"b": 3, "y": 2}, "m": 4})"));
  EXPECT_NE(Json::parse(R"({"m": 4})"), value);
  value.erase("a");
  value.update({{"z", 5}, {"n", 6}});
  EXPECT_EQ(value.dump(), R"({"z":5,"m":4,"n":6})");
  EXPECT_EQ(value.size(), 3U);
}

// An object if all are pairs with a name, as in the library that reads and writes the text.
TEST(Json, BracesMakeObjectsOrArrays) {
  EXPECT_EQ(Json({1, 4}).dump(), "[1,4]");
  EXPECT_EQ(Json({"a", "b"}).dump(), R"(["a","b"])");
  EXPECT_EQ(Json({{"a", "b"}}).dump(), R"({"a":"b"})");
  EXPECT_EQ(Json({{"a", 1}, {2, 3}}).dump(), R"([["a",1],[2,3]])");
  EXPECT_EQ(Json::array({{{"a", 1}}}).dump(), R"([{"a":1}])");
}

TEST(Json, NumbersAreEqualByValue) {
  EXPECT_EQ(Json(1), Json(1U));
  EXPECT_EQ(Json(1), Json(1.0));
  EXPECT_NE(Json(1), Json(2));
  EXPECT_NE(Json(-1), Json(std::numeric_limits<std::uint64_t>::max()));
  EXPECT_NE(Json(1), Json(true));
  EXPECT_NE(Json(0), Json());
}

TEST(Json, IsReadAsTheTypeThatIsAskedFor) {
  const Json value = Json::parse(
      R"({"n": 200, "minus": -1, "real": 2.5, "list": [1, 2], "map": {"a": {"b": "c"}},
          "pairs": [["k", "v"]]})");
  EXPECT_EQ(value["n"].get<std::uint8_t>(), 200);
  EXPECT_EQ(value["n"].get<double>(), 200);
  EXPECT_EQ(value["minus"].get<int>(), -1);
  EXPECT_EQ(value["list"].get<std::vector<int>>(), (std::vector<int>{1, 2}));
  EXPECT_EQ((value["map"].get<std::map<std::string, std::map<std::string, std::string>>>()),
            (std::map<std::string, std::map<std::string, std::string>>{{"a", {{"b", "c"}}}}));
  EXPECT_EQ((value["pairs"].get<std::vector<std::pair<std::string, std::string>>>()),
            (std::vector<std::pair<std::string, std::string>>{{"k", "v"}}));
  EXPECT_EQ(value.value("n", 1), 200);
  EXPECT_EQ(value.value("other", 1), 1);
  EXPECT_EQ(value.value("other", "usual"), "usual");

  EXPECT_EQ(problem_of([&] { value["n"].get<std::int8_t>(); }),
            "200 is not a whole number from -128 to 127");
  EXPECT_EQ(problem_of([&] { Json(-129).get<std::int8_t>(); }),
            "-129 is not a whole number from -128 to 127");
  EXPECT_EQ(problem_of([&] { Json(256).get<std::uint8_t>(); }),
            "256 is not a whole number from 0 to 255");
  EXPECT_EQ(problem_of([&] { value["minus"].get<std::uint64_t>(); }),
            "-1 is not a whole number from 0 to 18446744073709551615");
  EXPECT_EQ(
      problem_of([&] { Json(std::numeric_limits<std::uint64_t>::max()).get<std::int64_t>(); }),
      "18446744073709551615 is not a whole number from -9223372036854775808 to "
      "9223372036854775807");
  EXPECT_EQ(problem_of([&] { value["real"].get<int>(); }),
            "2.5 is not a whole number from -2147483648 to 2147483647");
  EXPECT_EQ(problem_of([&] { value["n"].get<std::string>(); }), "200 is not a text");
  EXPECT_EQ(problem_of([&] { value["n"].get<bool>(); }), "200 is not true or false");
  EXPECT_EQ(problem_of([&] { value["list"].get<double>(); }), "[1,2] is not a number");
  EXPECT_EQ(problem_of([&] { value["list"]["a"]; }), "[1,2] is not an object");
  EXPECT_EQ(problem_of([&] { value["n"][0]; }), "200 is not an array");
  EXPECT_EQ(problem_of([&] { value["list"][2]; }), "there are 2 elements, not 3");
  EXPECT_EQ(problem_of([&] { value["other"]; }), "there is no \"other\"");
}

TEST(Json, WhatIsNoJsonIsRefusedWithItsPlace) {
  try {
    Json::parse("{\"a\": 1,\n x}");
    FAIL() << "it is accepted";
  } catch (const JsonError& error) {
    EXPECT_EQ(error.position, 11U) << error.what();
  }
  EXPECT_TRUE(Json::parse_or_null("{\"a\": 1,\n x}").is_null());
  EXPECT_TRUE(Json::parse_or_null("").is_null());
}

TEST(Json, DeepNestingIsRefused) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(Json::parse(nested(Json::kDeepest)).is_array());
  const std::string problem = "is nested deeper than 1000";
  for (const std::size_t depth : {std::size_t{Json::kDeepest} + 1, std::size_t{1} << 20}) {
    EXPECT_EQ(problem_of([&] { Json::parse(nested(depth)); }), problem);
    EXPECT_EQ(problem_of([&] { Json::for_each_element(nested(depth), [](const Json&) {}); }),
              problem);
    EXPECT_TRUE(Json::parse_or_null(nested(depth)).is_null());
  }
}

TEST(Json, WhatIsNotUtf8IsReplaced) { EXPECT_EQ(Json("a\xff").dump(), "\"a\xef\xbf\xbd\""); }

TEST(Json, ElementsAreReadOneByOne) {
  std::vector<Json> read;
  const auto keep = [&](const Json& element) { read.push_back(element); };
  EXPECT_TRUE(Json::for_each_element(R"([{"a": [1, {"b": 2}]}, 3, [], "x"])", keep));
  EXPECT_EQ(read, (std::vector<Json>{{{"a", {1, {{"b", 2}}}}}, 3, Json::array(), "x"}));
  EXPECT_FALSE(Json::for_each_element("3", keep));
  EXPECT_EQ(read.size(), 4U);
  EXPECT_THROW(Json::for_each_element("[1, 2", keep), JsonError);
  EXPECT_EQ(read.size(), 6U) << "until then";
}

}  // namespace
}  // namespace perdura
