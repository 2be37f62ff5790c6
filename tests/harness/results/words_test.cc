// Structures as words: each kind of field comes back as it was, into whatever was there before, and
// words that end too early or claim too much are refused.
#include <gtest/gtest.h>

#include <limits>

#include "harness/results/measurement.h"
#include "harness/results/words.h"

namespace perdura::harness {

// In the namespace of the archives, which look visit() up there.
struct AllFields {
  enum class Color : std::uint8_t { red, green };
  struct Inner {
    std::string name;
    std::optional<std::uint32_t> number;
    bool operator==(const Inner&) const = default;
  };

  std::int32_t negative = 0;
  bool flag = false;
  Color color = Color::red;
  double real = 0;
  Nanoseconds duration{};
  Time time{};
  std::string text;
  std::optional<std::string> maybe;
  std::vector<Inner> list;
  std::map<std::string, Inner> by_name;
  measure::Histogram histogram;
  Words raw;
  std::uint64_t last = 0;
  bool operator==(const AllFields&) const = default;
};
template <class Archive, class T>
requires IsOf<T, AllFields::Inner>
void visit(Archive& archive, T& inner) { archive(inner.name, inner.number); }
template <class Archive, class T>
requires IsOf<T, AllFields>
void visit(Archive& archive, T& all) {
  archive(all.negative, all.flag, all.color, all.real, all.duration, all.time, all.text, all.maybe,
          all.list, all.by_name, all.histogram, all.raw, all.last);
}

namespace {

AllFields sample(const std::string& text) {
  AllFields all;
  all.negative = std::numeric_limits<std::int32_t>::min();
  all.flag = true;
  all.color = AllFields::Color::green;
  all.real = -0.1;
  all.duration = Nanoseconds(-3);
  all.time = Time(Nanoseconds(5));
  all.text = text;
  all.maybe = text + "?";
  all.list = {{text, 7}, {"", std::nullopt}};
  all.by_name = {{text, {"a", 1}}, {text + text + "z", {"b", std::nullopt}}};
  all.histogram.record(12'345);
  all.raw = {1, 0, std::numeric_limits<std::uint64_t>::max()};
  all.last = 99;
  return all;
}

Words words_of(const AllFields& all) {
  WordWriter writer;
  visit(writer, all);
  return writer.take();
}

TEST(Words, BringEachKindOfFieldBack) {
  // Lengths around those that fill words.
  for (const std::size_t length : {0, 1, 7, 8, 9, 15, 16, 17}) {
    SCOPED_TRACE(length);
    const AllFields sent = sample(std::string(length, 'x'));
    const Words words = words_of(sent);
    AllFields received;
    WordReader reader(words);
    EXPECT_FALSE(reader.at_end());
    visit(reader, received);
    EXPECT_EQ(received, sent);
    EXPECT_TRUE(reader.at_end());
  }
}

TEST(Words, ReplaceWhatWasThere) {
  for (const AllFields& sent : {AllFields{}, sample("new")}) {
    const Words words = words_of(sent);
    AllFields received = sample("something longer than that");
    WordReader reader(words);
    visit(reader, received);
    EXPECT_EQ(received, sent);
  }
}

TEST(Words, ThatEndTooEarlyAreRefused) {
  const Words words = words_of(sample("a text of several words"));
  for (std::size_t length = 0; length < words.size(); ++length) {
    AllFields received;
    const std::span<const std::uint64_t> all = words;
    WordReader reader(all.first(length));
    EXPECT_THROW(visit(reader, received), PlatformError) << length;
  }
}

// A damaged number of items must not be what memory is reserved for.
template <class Field>
void expect_too_many_is_refused() {
  for (const std::uint64_t count :
       {std::uint64_t{3}, std::uint64_t{1} << 40, std::numeric_limits<std::uint64_t>::max()}) {
    const Words words{count, 0};
    Field field;
    WordReader reader(words);
    EXPECT_THROW(reader(field), PlatformError) << count;
  }
}
TEST(Words, ThatClaimMoreItemsThanThereAreWordsAreRefused) {
  expect_too_many_is_refused<std::vector<std::uint64_t>>();
  expect_too_many_is_refused<std::vector<std::string>>();
  expect_too_many_is_refused<std::map<std::uint64_t, bool>>();
  expect_too_many_is_refused<measure::Histogram>();
}
TEST(Words, ATextThatIsLongerThanTheWordsIsRefused) {
  for (const std::uint64_t size : {std::uint64_t{9}, std::numeric_limits<std::uint64_t>::max()}) {
    const Words words{size, 0};
    std::string text;
    WordReader reader(words);
    EXPECT_THROW(reader(text), PlatformError) << size;
  }
}

}  // namespace
}  // namespace perdura::harness
