#include "bench/ycsb/properties.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace perdura::ycsb {
namespace {

Properties parsed(std::string_view text) {
  auto properties = Properties::parse(text, "file");
  EXPECT_TRUE(properties.has_value());
  return properties.value_or(Properties());
}

std::string value(const Properties& properties, std::string_view key) {
  const auto* entry = properties.find(key);
  return entry == nullptr ? "(absent)" : entry->value;
}

TEST(Properties, SeparateKeyAndValueByEqualsColonOrWhiteSpace) {
  const Properties properties = parsed("a=1\nb:2\nc 3\nd = 4\n  e\t:\t5\nf\ng==6\nh=1:2=3");
  EXPECT_EQ(value(properties, "a"), "1");
  EXPECT_EQ(value(properties, "b"), "2");
  EXPECT_EQ(value(properties, "c"), "3");
  EXPECT_EQ(value(properties, "d"), "4");
  EXPECT_EQ(value(properties, "e"), "5");
  EXPECT_EQ(value(properties, "f"), "");
  EXPECT_EQ(value(properties, "g"), "=6");
  EXPECT_EQ(value(properties, "h"), "1:2=3");
  EXPECT_EQ(properties.entries().size(), 8U);
}

TEST(Properties, SkipCommentsAndBlankLines) {
  const Properties properties =
      parsed("# a=1   \n! b=2\n   # c=3\n\n \t \nd=4 # no comment here\n# e=5 \\\nf=6");
  EXPECT_EQ(properties.entries().size(), 2U);
  EXPECT_EQ(value(properties, "d"), "4 # no comment here");
  EXPECT_EQ(value(properties, "f"), "6") << "a backslash does not continue a comment";
}

TEST(Properties, ContinueALineAfterAnOddNumberOfBackslashes) {
  const Properties properties =
      parsed("list=one,\\\n     two,\\\r\n  three\neven=x\\\\\nnext=y\nlast=z\\");
  EXPECT_EQ(value(properties, "list"), "one,two,three");
  EXPECT_EQ(value(properties, "even"), "x\\");
  EXPECT_EQ(value(properties, "next"), "y");
  EXPECT_EQ(value(properties, "last"), "z");
}

TEST(Properties, ResolveEscapes) {
  const Properties properties =
      parsed("a\\=b\\:c\\ d=x\\ty\\nz\nu=\\u0041\\u00e9\\u20ac\ntrailing=kept\\ \\  \nplain=\\q");
  EXPECT_EQ(value(properties, "a=b:c d"), "x\ty\nz");
  EXPECT_EQ(value(properties, "u"), "A\xc3\xa9\xe2\x82\xac");
  EXPECT_EQ(value(properties, "trailing"), "kept  ");
  EXPECT_EQ(value(properties, "plain"), "q");
}

TEST(Properties, RefuseAMalformedUnicodeEscape) {
  for (const char* text : {"a=1\nb=\\u12g4", "a=1\nb=\\u12", "a=1\nb\\u=2"}) {
    const auto properties = Properties::parse(text, "file");
    ASSERT_FALSE(properties.has_value()) << text;
    EXPECT_TRUE(properties.error().message.starts_with("file:2: malformed"))
        << properties.error().message;
  }
}

TEST(Properties, AcceptEveryLineTerminatorAndTrailingBlanks) {
  const Properties properties = parsed("a=1  \r\nb=2\t\rc=3\nd=4");
  EXPECT_EQ(value(properties, "a"), "1");
  EXPECT_EQ(value(properties, "b"), "2");
  EXPECT_EQ(value(properties, "c"), "3");
  EXPECT_EQ(value(properties, "d"), "4");
  EXPECT_EQ(properties.find("d")->where, "file:4");
}

TEST(Properties, KeepTheLastOfSeveralEntriesAndItsPlace) {
  Properties properties = parsed("a=1\nb=\\\n  2\na=3");
  EXPECT_EQ(value(properties, "a"), "3");
  EXPECT_EQ(properties.find("a")->where, "file:4");
  EXPECT_EQ(properties.find("b")->where, "file:2") << "where the entry begins";
  properties.set("a", "5", "command line");
  EXPECT_EQ(value(properties, "a"), "5");
  EXPECT_EQ(properties.find("a")->where, "command line");
}

TEST(Properties, ReportAFileThatCannotBeRead) {
  for (const std::filesystem::path path : {"/nonexistent/workload", "/"}) {
    const auto properties = Properties::read_file(path);
    ASSERT_FALSE(properties.has_value());
    EXPECT_TRUE(properties.error().message.starts_with(path.string() + ": cannot read"));
  }
}

}  // namespace
}  // namespace perdura::ycsb
