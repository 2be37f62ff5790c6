// Texts that are not meant for a terminal.
#include <gtest/gtest.h>

#include "harness/text/printable.h"

namespace perdura::harness {
namespace {

TEST(Printable, LeavesTextAsItIs) {
  for (const std::string text : {"", "plain", "µs ≤ 3 → 4", "\U0001F600"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, ShowsWhatATerminalWouldObeyAsNumbers) {
  EXPECT_EQ(printable("a\x1b[2Jb\nc\t\x7f"), "a\\x1b[2Jb\\x0ac\\x09\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b") << "a control character of two bytes";
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3") << "no UTF-8";
  EXPECT_EQ(printable("\xe0\x80\xaf\xed\xa0\x80"), "\\xe0\\x80\\xaf\\xed\\xa0\\x80");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
}

TEST(Printable, CutsOutOfTheMiddle) {
  std::string text = "file:1: '";
  for (int i = 0; i < 100'000; ++i) text += "µ";
  const std::string shown = printable(text + "'; correct the value");
  EXPECT_LT(shown.size(), 2000U);
  EXPECT_TRUE(shown.starts_with("file:1: 'µµ"));
  EXPECT_TRUE(shown.ends_with("µµ'; correct the value"));
  EXPECT_EQ(printable(shown).find("\\x"), std::string::npos) << "no character was cut";
}

TEST(ByteOrderMark, IsNoPartOfAText) {
  EXPECT_EQ(without_byte_order_mark("\xEF\xBB\xBFkey"), "key");
  EXPECT_EQ(without_byte_order_mark("\xEF\xBB"), "\xEF\xBB");
}

}  // namespace
}  // namespace perdura::harness
