// Names that may become parts of paths.
#include "platform/base/plain_name.h"

#include <gtest/gtest.h>

#include <string>

namespace perdura {
namespace {

TEST(PlainName, OfAnEntryNeverLeavesItsFolder) {
  for (const std::string name : {"a", "a.b", "...", ".a", "a b", "\xC3\xA4"}) {
    EXPECT_TRUE(is_entry_name(name)) << name;
  }
  for (const std::string& name : {std::string(), std::string("."), std::string(".."),
                                  std::string("a/b"), std::string("/"), std::string("a\0b", 3)}) {
    EXPECT_FALSE(is_entry_name(name)) << name;
  }
}

TEST(PlainName, IsHiddenIfItBeginsWithADot) {
  EXPECT_TRUE(is_visible_name("a."));
  for (const std::string name : {"", ".a", ".", "..", "a/b"}) {
    EXPECT_FALSE(is_visible_name(name)) << name;
  }
}

TEST(PlainName, HasLettersDigitsAndThreeSigns) {
  EXPECT_TRUE(is_plain_name("Az09-_."));
  for (const std::string name : {"", ".a", "..", "a b", "a/b", "a:b", "a,b", "\xC3\xA4", "a\n"}) {
    EXPECT_FALSE(is_plain_name(name)) << name;
  }
  EXPECT_TRUE(is_plain_name(std::string(100, 'a'), 100));
  EXPECT_FALSE(is_plain_name(std::string(101, 'a'), 100));
}

}  // namespace
}  // namespace perdura
