// Words and parts of text: as the streams of the standard library find them.
#include "platform/base/words.h"

#include <gtest/gtest.h>

#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace perdura {
namespace {

// Every text of up to six of these characters.
template <class Check>
void each_text(const Check& check) {
  constexpr std::string_view kCharacters = "a ,\n";
  for (std::size_t length = 0, texts = 1; length <= 6; ++length, texts *= kCharacters.size()) {
    for (std::size_t number = 0; number < texts; ++number) {
      std::string text;
      for (std::size_t rest = number; text.size() < length; rest /= kCharacters.size()) {
        text += kCharacters[rest % kCharacters.size()];
      }
      check(text);
    }
  }
}

TEST(Words, AreThoseOfAStream) {
  each_text([](const std::string& text) {
    std::istringstream in(text);
    const std::vector<std::string> expected{std::istream_iterator<std::string>(in), {}};
    EXPECT_EQ(words_of(text), expected) << testing::PrintToString(text);
  });
}

TEST(Parts, AreThoseOfGetline) {
  each_text([](const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> expected;
    for (std::string part; std::getline(in, part, ',');) expected.push_back(part);
    EXPECT_EQ(parts_of(text, ','), expected) << testing::PrintToString(text);
  });
}

}  // namespace
}  // namespace perdura
