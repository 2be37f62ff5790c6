#include "harness/config/document.h"

#include <gtest/gtest.h>

#include "platform/base/error.h"

namespace perdura::harness {
namespace {

constexpr std::string_view kText =
    "# A sweep.\n"
    "name = \"é\" # kept\n"
    "[workload]\n"
    "operations = 20000  # kept too\n"
    "[matrix]\n"
    "value_size = [16,\n"
    "  64, # small\n"
    "  256]  # end\n"
    "[[figure]]\n"
    "id = \"1\"\n";

std::string with(std::string_view override_text) {
  const Override change = parse_override(override_text);
  return Document::parse(std::string(kText), "x.toml", std::span(&change, 1)).text();
}

std::string error_of(std::string_view override_text) {
  try {
    with(override_text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Document, KeepsItsTextWithoutOverrides) {
  EXPECT_EQ(Document::parse(std::string(kText), "x.toml").text(), kText);
}

TEST(Document, ReplacesAValueAndNothingElse) {
  EXPECT_EQ(with("workload.operations=500"),
            "# A sweep.\nname = \"é\" # kept\n[workload]\noperations = 500  # kept too\n[matrix]\n"
            "value_size = [16,\n  64, # small\n  256]  # end\n[[figure]]\nid = \"1\"\n");
  EXPECT_EQ(
      with("name=\"b\""),
      "# A sweep.\nname = \"b\" # kept\n[workload]\noperations = 20000  # kept too\n[matrix]\n"
      "value_size = [16,\n  64, # small\n  256]  # end\n[[figure]]\nid = \"1\"\n");
}

TEST(Document, ReplacesAListOfSeveralLines) {
  EXPECT_EQ(
      with("matrix.value_size=[1, 2]"),
      "# A sweep.\nname = \"é\" # kept\n[workload]\noperations = 20000  # kept too\n[matrix]\n"
      "value_size = [1, 2]  # end\n[[figure]]\nid = \"1\"\n");
}

TEST(Document, AddsAKeyToItsSection) {
  EXPECT_NE(with("workload.warmup=5").find("[workload]\nwarmup = 5\noperations"),
            std::string::npos);
  EXPECT_TRUE(with("seed=7").starts_with("seed = 7\n# A sweep.\n"));
}

TEST(Document, AddsASection) {
  EXPECT_TRUE(with("systems.erda.heads=4").ends_with("id = \"1\"\n\n[systems.erda]\nheads = 4\n"));
}

TEST(Document, KnowsWhereEachPartComesFrom) {
  const Override change = parse_override("matrix.value_size=[1]");
  const Document document = Document::parse(std::string(kText), "x.toml", std::span(&change, 1));
  EXPECT_EQ(document.where(document.table()["workload"]["operations"].node()->source()),
            "x.toml:4");
  EXPECT_EQ(document.where(document.table()["matrix"]["value_size"].node()->source()),
            "--set matrix.value_size=[1]");
  // Two lines fewer than in the file, and yet:
  EXPECT_EQ(document.where(document.table()["figure"][0]["id"].node()->source()), "x.toml:10");
}

TEST(Document, AppliesOverridesInOrder) {
  const std::vector<Override> changes{parse_override("a.b=1"), parse_override("a.c=2"),
                                      parse_override("a.b=3")};
  EXPECT_EQ(Document::parse("", "x.toml", changes).text(), "\n[a]\nc = 2\nb = 3\n");
}

TEST(Document, RefusesOverridesThatAreNone) {
  EXPECT_EQ(error_of("workload.operations"),
            "--set workload.operations: write --set SECTION.KEY=VALUE");
  EXPECT_EQ(error_of("=3"), "--set =3: write --set SECTION.KEY=VALUE");
  EXPECT_EQ(error_of("work load=3"),
            "--set work load=3: 'work load' is not a TOML key; write --set SECTION.KEY=VALUE");
  EXPECT_EQ(error_of("name=erda"),
            "--set name=erda: 'erda' is not a TOML value; write numbers plainly, text in quotes "
            "('key=\"text\"' for the shell) and lists in brackets");
  EXPECT_EQ(error_of("name=1\nseed=2"), "--set name=1\nseed=2: give one value");
  EXPECT_EQ(error_of("name.first=1"), "--set name.first=1: name is not a section");
  EXPECT_EQ(error_of("workload=1"), "--set workload=1: workload is a section, not a value");
  EXPECT_EQ(error_of("figure=1"), "--set figure=1: figure is a section, not a value");
}

TEST(Document, RefusesToAddToASectionThatHasNoLineOfItsOwn) {
  const Override change = parse_override("workload.warmup=5");
  try {
    Document::parse("workload = { records = 5 }\n", "x.toml", std::span(&change, 1));
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "--set workload.warmup=5: [workload] must be a section of its own in x.toml");
  }
}

}  // namespace
}  // namespace perdura::harness
