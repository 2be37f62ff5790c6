// Images that are decided word by word are the same as those that are listed one by one.
#include "platform/pmem/model/lazy_images.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "platform/base/error.h"
#include "tests/platform/pmem/histories.h"

namespace perdura::pmem {
namespace {

constexpr std::uint64_t kLazyHistories = 1000;

// A node that has been told the random history of this seed. In every second one values are stored
// again, so that some changes make no difference, while they still order others.
std::unique_ptr<Teller> node_after(const PersistenceModel& model, std::uint64_t seed) {
  constexpr std::uint8_t kFew = 3;
  auto teller = std::make_unique<Teller>(model);
  for (Told told : random_history(seed)) {
    if (seed % 2 == 1) told.value %= kFew;
    teller->tell(told);
  }
  return teller;
}

std::vector<ImageSpace> space_of(Teller& teller) {
  std::vector<ImageSpace> spaces;
  spaces.emplace_back(teller.node.state);
  return spaces;
}

// The memory that a run finds that reads all words.
std::string whole_memory(const Teller& teller, LazyImages& images) {
  std::string found(reinterpret_cast<const char*>(teller.node.memory.data()), kMemory);
  const ImageSpace& space = images.spaces().front();
  for (const auto& line : space.lines()) {
    std::memcpy(&found[line.place.offset], line.bytes.data(), kCacheLine);
  }
  for (std::size_t i = 0; i < space.words().size(); ++i) {
    const ImageSpace::WordBytes bytes = images.word(0, i);
    std::memcpy(&found[space.words()[i].place.offset], bytes.data(), kWord);
  }
  return found;
}

class LazyImagesTest : public testing::TestWithParam<PersistenceModel> {};

TEST_P(LazyImagesTest, AreAllImagesIfAllIsRead) {
  std::uint64_t plain = 0;
  for (std::uint64_t seed = 0; seed < kLazyHistories; ++seed) {
    SCOPED_TRACE(seed);
    const auto teller = node_after(GetParam(), seed);
    LazyImages images(space_of(*teller), seed);
    std::set<std::string> found;
    while (images.next()) {
      found.insert(whole_memory(*teller, images));
      images.end();
    }
    ASSERT_EQ(found, teller->node.images());
    ASSERT_EQ(images.covered_by_all(), images.images());
    ASSERT_TRUE(images.exhausted());
    // Where no word is changed twice, an image is told apart by its bytes.
    const auto words = images.spaces().front().words();
    const bool once = std::all_of(words.begin(), words.end(), [](const ImageSpace::Word& word) {
      return word.layers.size() == 1;
    });
    if (!once) continue;
    ASSERT_EQ(images.images(), found.size());
    plain += found.size() > 2 ? 1 : 0;
  }
  EXPECT_GT(plain, 20U) << "too few histories in which the count can be compared";
}

// A run stands for exactly the images that have what it has read. What a run reads may depend on
// what it has read before.
TEST_P(LazyImagesTest, AreCountedByWhatIsRead) {
  std::uint64_t saved = 0;
  for (std::uint64_t seed = 0; seed < kLazyHistories; ++seed) {
    SCOPED_TRACE(seed);
    const auto teller = node_after(GetParam(), seed);
    LazyImages images(space_of(*teller), seed);
    const std::size_t words = images.spaces().front().words().size();
    std::uint64_t covered = 0;
    std::set<std::string> outcomes;
    while (images.next()) {
      std::string read;
      for (std::size_t at = seed; words > 0 && read.size() < 3 * kWord;) {
        const ImageSpace::WordBytes bytes = images.word(0, at % words);
        read.append(reinterpret_cast<const char*>(bytes.data()), kWord);
        at += 1 + std::to_integer<std::size_t>(bytes.front());
      }
      images.end();
      outcomes.insert(read);
      covered += images.covered();
    }
    ASSERT_EQ(covered, images.images());
    ASSERT_EQ(images.covered_by_all(), images.images());
    ASSERT_LE(images.runs(), images.images());
    saved += images.images() - images.runs();
    // The same reads of each image that is listed.
    std::set<std::string> expected;
    for (const std::string& memory : teller->node.images()) {
      std::string read;
      for (std::size_t at = seed; words > 0 && read.size() < 3 * kWord;) {
        const auto& place = images.spaces().front().words()[at % words].place;
        read += memory.substr(place.offset, kWord);
        at += 1 + static_cast<unsigned char>(memory[place.offset]);
      }
      expected.insert(read);
    }
    ASSERT_EQ(outcomes, expected);
  }
  EXPECT_GT(saved, kLazyHistories / 2) << "where changes make no difference, little is saved";
}

// Choices that were made elsewhere, and whether they were asked for in the same way.
class Replayed final : public Choices {
 public:
  explicit Replayed(std::vector<ImageSpace::Choice> choices) : choices_(std::move(choices)) {}
  std::size_t choose(std::size_t n) override {
    if (next_ == choices_.size() || choices_[next_].of != n) {
      differs_ = true;
      return 0;
    }
    return choices_[next_++].taken;
  }
  bool all_asked_for() const { return !differs_ && next_ == choices_.size(); }

 private:
  std::vector<ImageSpace::Choice> choices_;
  std::size_t next_ = 0;
  bool differs_ = false;
};

// What a run has read is in the image that its choices make, and if it has read all, that is it.
TEST_P(LazyImagesTest, AreMadeAgainByTheirChoices) {
  std::uint64_t some = 0;
  for (std::uint64_t seed = 0; seed < kLazyHistories; ++seed) {
    SCOPED_TRACE(seed);
    const auto teller = node_after(GetParam(), seed);
    LazyImages all(space_of(*teller), seed);
    while (all.next()) {
      const std::string memory = whole_memory(*teller, all);
      all.end();
      Replayed replayed(all.choices(0));
      ASSERT_EQ(teller->node.image(replayed), memory);
      ASSERT_TRUE(replayed.all_asked_for());
    }
    LazyImages few(space_of(*teller), seed);
    LazyImages taken(space_of(*teller), seed);
    const std::size_t words = few.spaces().front().words().size();
    while (words > 0 && few.next()) {
      const std::size_t number = seed % words;
      const ImageSpace::WordBytes read = few.word(0, number);
      few.end();
      Replayed replayed(few.choices(0));
      const std::string memory = teller->node.image(replayed);
      const Bytes at = few.spaces().front().words()[number].place.offset;
      ASSERT_EQ(std::memcmp(&memory[at], read.data(), kWord), 0);
      ASSERT_TRUE(replayed.all_asked_for());
      Replayed taken_again(few.choices(0));
      taken.take(taken_again);
      ASSERT_TRUE(taken_again.all_asked_for());
      ASSERT_EQ(whole_memory(*teller, taken), memory);
      taken.end();
      ++some;
    }
  }
  EXPECT_GT(some, kLazyHistories);
}

TEST_P(LazyImagesTest, BeginWithTheLeastAndTheMost) {
  for (std::uint64_t seed = 0; seed < kLazyHistories; ++seed) {
    SCOPED_TRACE(seed);
    const auto teller = node_after(GetParam(), seed);
    LazyImages images(space_of(*teller), seed);
    LeastChoices least;
    MostChoices most;
    ASSERT_TRUE(images.next());
    ASSERT_EQ(whole_memory(*teller, images), teller->node.image(least));
    images.end();
    if (!images.next()) continue;
    ASSERT_EQ(whole_memory(*teller, images), teller->node.image(most));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, LazyImagesTest, testing::ValuesIn(models()), [](const auto& one) {
  const PersistenceModel& model = one.param;
  return fmt::format("{}{}_{}", to_string(model.domain), model.ddio ? "_ddio" : "_no_ddio",
                     to_string(model.transport));
});

// A node without DDIO on which so many messages of a line each are under way.
struct Messages {
  explicit Messages(std::size_t count) : state({PersistenceDomain::dmp, false}) {
    state.attach(0, Medium::pm, memory.data());
    const auto connection = state.connect();
    for (std::size_t i = 0; i < count; ++i) {
      const std::vector<std::byte> bytes(kCacheLine, std::byte{1});
      state.place(state.post(connection, RemoteKind::posted), {0, i * kCacheLine}, bytes);
    }
  }
  std::vector<ImageSpace> space() {
    std::vector<ImageSpace> spaces;
    spaces.emplace_back(state);
    return spaces;
  }
  std::vector<std::byte> memory = std::vector<std::byte>(64 * kCacheLine);
  PersistenceState state;
};

TEST(LazyImages, OfManyWordsNeedFewRunsIfFewAreRead) {
  Messages messages(3);
  LazyImages images(messages.space(), 1);
  EXPECT_EQ(images.images(), std::uint64_t{1} << 24) << "24 words, in any order";
  while (images.next()) {
    images.word(0, 5);
    images.end();
    EXPECT_EQ(images.covered(), std::uint64_t{1} << 23);
  }
  EXPECT_EQ(images.runs(), 2U);
}

TEST(LazyImages, AreCountedUpToALimitOnly) {
  Messages messages(9);
  LazyImages images(messages.space(), 1);
  EXPECT_EQ(images.images(), kCountless);
  ASSERT_TRUE(images.next());
  images.word(0, 0);
  images.end();
  EXPECT_EQ(images.covered(), kCountless);
}

// If three quarters of the runs had torn lines, those with all of a line would never be found.
TEST(LazyImages, SurviveWholeLostAndTorn) {
  Messages messages(4);
  LazyImages images(messages.space(), 7);
  std::size_t whole = 0;
  std::size_t lost = 0;
  constexpr std::size_t kRuns = 300;
  for (std::size_t run = 0; run < kRuns; ++run) {
    ASSERT_TRUE(images.next());
    std::size_t ones = 0;
    for (std::size_t word = 0; word < 8; ++word) {
      ones += std::to_integer<std::size_t>(images.word(0, word).front());
    }
    for (std::size_t word = 8; word < 32; ++word) images.word(0, word);
    images.end();
    whole += ones == 8 ? 1 : 0;
    lost += ones == 0 ? 1 : 0;
  }
  EXPECT_GT(whole, kRuns / 6);
  EXPECT_GT(lost, kRuns / 6);
  EXPECT_LT(whole + lost, kRuns * 5 / 6);
}

TEST(LazyImages, AreTheSameForTheSameSeed) {
  const auto decisions = [](std::uint64_t seed) {
    Messages messages(2);
    LazyImages images(messages.space(), seed);
    std::vector<LazyImages::Decisions> all;
    while (all.size() < 50 && images.next()) {
      for (std::size_t word = 0; word < 16; ++word) images.word(0, word);
      images.end();
      all.push_back(images.decisions());
    }
    return all;
  };
  EXPECT_EQ(decisions(3), decisions(3));
  EXPECT_NE(decisions(3), decisions(4));
}

TEST(LazyImages, ARunIsRepeatedByItsDecisions) {
  Messages messages(2);
  LazyImages images(messages.space(), 1);
  for (int run = 0; run < 20; ++run) {
    ASSERT_TRUE(images.next());
    const auto first = images.word(0, 3);
    const auto second = images.word(0, 9);
    images.end();
    const LazyImages::Decisions decisions = images.decisions();
    const std::uint64_t covered = images.covered_by_all();
    images.repeat(decisions);
    EXPECT_EQ(images.word(0, 3), first);
    EXPECT_EQ(images.word(0, 9), second);
    images.end();
    EXPECT_EQ(images.covered_by_all(), covered);
    if (images.exhausted()) break;
  }
  EXPECT_EQ(images.runs(), 4U);
}

TEST(LazyImages, RefuseAProgramThatDependsOnAnythingElse) {
  Messages messages(2);
  LazyImages images(messages.space(), 1);
  ASSERT_TRUE(images.next());
  images.word(0, 3);
  images.end();
  ASSERT_TRUE(images.next());
  images.word(0, 4);
  EXPECT_THROW(images.end(), PlatformError);
}

}  // namespace
}  // namespace perdura::pmem
