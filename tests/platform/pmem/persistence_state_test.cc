// PersistenceState beyond what litmus tests can say: the set of images as a whole, over random
// histories.
#include "platform/pmem/model/persistence_state.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "tests/platform/pmem/histories.h"

namespace perdura::pmem {
namespace {

// --- simple histories ----------------------------------------------------------------------------

TEST(PersistenceImages, AreVisitedOnceEach) {
  Node node({});
  const int writer = 0;
  for (const Bytes offset : {Bytes{0}, kWord, 2 * kCacheLine, 2 * kCacheLine + kWord}) {
    node.state.store(&writer, {kRegion, offset}, Node::word(1));
  }
  Enumerator all;
  std::set<std::string> images;
  while (all.next()) images.insert(node.image(all));
  EXPECT_EQ(images.size(), 9U);  // of each line's two stores none, the first, or both
  EXPECT_EQ(all.sequences(), 9U);
}

TEST(PersistenceImages, HaveAnySubsetOfAMessagesWords) {
  for (const PersistenceModel model : models()) {
    Node node(model);
    const auto operation = node.state.post(node.state.connect(), RemoteKind::posted);
    node.state.place(operation, {kRegion, kCacheLine - 2 * kWord}, Node::word(1, 5));
    EXPECT_EQ(node.images().size(), 32U);
  }
}

TEST(PersistenceImages, HaveAnySubsetOfAStoresWords) {
  Node node({});
  const int writer = 0;
  node.state.store(&writer, {kRegion, 0}, Node::word(1, 3));
  EXPECT_EQ(node.images().size(), 8U);
}

TEST(PersistenceImages, AreWhatTheyWereBeforeTheFirstChange) {
  Node node({});
  const int writer = 0;
  node.changed(0, Node::word(7));
  node.state.expect({kRegion, 0}, kWord);
  node.changed(0, Node::word(8));  // memory is ahead of what is told
  EXPECT_EQ(node.state.lines(), 1U);
  EXPECT_EQ(node.images().size(), 1U);
  LeastChoices least;
  EXPECT_EQ(node.image(least)[0], 7);
  node.state.store(&writer, {kRegion, 0}, Node::word(8));
  MostChoices most;
  EXPECT_EQ(node.image(least)[0], 7);
  EXPECT_EQ(node.image(most)[0], 8);
}

TEST(PersistenceLines, DisappearOnceDurable) {
  Node node({});
  const int writer = 0;
  LeastChoices least;
  node.state.store(&writer, {kRegion, 0}, Node::word(1));
  node.changed(0, Node::word(1));
  node.state.store(&writer, {kRegion, kCacheLine}, Node::word(2));
  node.changed(kCacheLine, Node::word(2));
  EXPECT_EQ(node.state.image(least).size(), 2U);
  node.state.flush(&writer, {kRegion, 0}, kWord);
  EXPECT_EQ(node.state.image(least).size(), 2U);
  node.state.fence(&writer);
  EXPECT_EQ(node.state.image(least).size(), 1U);
  EXPECT_EQ(node.state.lines(), 1U);
  node.state.flush(&writer, {kRegion, kCacheLine}, kWord);
  node.state.fence(&writer);
  EXPECT_TRUE(node.state.image(least).empty());
  EXPECT_EQ(node.state.lines(), 0U);
}

TEST(PersistenceLines, AreNotKeptForDram) {
  Node node({});
  const int writer = 0;
  node.state.attach(kRegion + 1, Medium::dram, node.memory.data());
  node.state.expect({kRegion + 1, 0}, kWord);
  node.state.store(&writer, {kRegion + 1, 0}, Node::word(1));
  EXPECT_EQ(node.state.lines(), 0U);
}

TEST(PersistenceSeen, IsForWhatWasSeenWhole) {
  Node node({PersistenceDomain::mhp, true, Transport::infiniband});
  const auto operation = node.state.post(node.state.connect(), RemoteKind::posted);
  node.state.place(operation, {kRegion, 0}, Node::word(1, 2));
  node.state.seen({kRegion, 0}, kWord);
  EXPECT_EQ(node.images().size(), 4U);
  node.state.seen({kRegion, 0}, 2 * kWord);
  EXPECT_EQ(node.images().size(), 1U);
}

TEST(PersistenceWhereabouts, AreWhatHasComeLeastFar) {
  using Whereabouts = PersistenceState::Whereabouts;
  Node node({PersistenceDomain::dmp, true, Transport::infiniband});
  const int writer = 0;
  auto& state = node.state;
  const auto connection = state.connect();
  EXPECT_EQ(state.whereabouts({kRegion, 0}, kMemory), Whereabouts::durable);
  state.store(&writer, {kRegion, 0}, Node::word(1));
  EXPECT_EQ(state.whereabouts({kRegion, 0}, kMemory), Whereabouts::cache);
  EXPECT_EQ(state.whereabouts({kRegion, kWord}, kWord), Whereabouts::durable);
  state.stream(&writer, {kRegion, kCacheLine}, Node::word(1));
  EXPECT_EQ(state.whereabouts({kRegion, 0}, kMemory), Whereabouts::write_combining);
  state.place(state.post(connection, RemoteKind::posted), {kRegion, 2 * kCacheLine}, Node::word(1));
  EXPECT_EQ(state.whereabouts({kRegion, 0}, kMemory), Whereabouts::device);
  state.completed(state.post(connection, RemoteKind::read));
  EXPECT_EQ(state.whereabouts({kRegion, 2 * kCacheLine}, kWord), Whereabouts::cache);
  EXPECT_EQ(to_string(Whereabouts::durable), "");
}

// --- random histories ----------------------------------------------------------------------------

constexpr std::uint64_t kHistories = 1000;

class RandomHistories : public testing::TestWithParam<PersistenceModel> {};

// Tidying up, at whatever moment, never changes the set of images.
TEST_P(RandomHistories, LeaveTheSameImagesHoweverOftenSettled) {
  for (std::uint64_t seed = 0; seed < kHistories; ++seed) {
    Teller late(GetParam());
    Teller early(GetParam());
    for (const Told& told : random_history(seed)) {
      late.tell(told);
      early.tell(told);
      LeastChoices least;
      early.node.state.image(least);
    }
    ASSERT_EQ(late.node.images(), early.node.images()) << "seed " << seed;
  }
}

TEST_P(RandomHistories, AllowFewerImagesTheMoreIsKnown) {
  for (std::uint64_t seed = 0; seed < kHistories; ++seed) {
    Teller teller(GetParam());
    auto before = teller.node.images();
    std::size_t step = 0;
    for (const Told& told : random_history(seed)) {
      teller.tell(told);
      auto after = teller.node.images();
      ASSERT_FALSE(after.empty());
      if (told.is_knowledge()) {
        ASSERT_TRUE(std::includes(before.begin(), before.end(), after.begin(), after.end()))
            << "seed " << seed << ", step " << step;
      }
      // What a device has been told to change may as well not have come.
      if (told.kind == Told::Kind::operation) {
        ASSERT_TRUE(std::includes(after.begin(), after.end(), before.begin(), before.end()))
            << "seed " << seed << ", step " << step;
      }
      before = std::move(after);
      ++step;
    }
  }
}

// The extreme images are images, and so is any random one, which its seed gives again. Of what is
// changed once, LeastChoices keep no more than any other image and MostChoices no less.
TEST_P(RandomHistories, HaveExtremeImages) {
  for (std::uint64_t seed = 0; seed < kHistories; ++seed) {
    Teller teller(GetParam());
    Bytes next = 0;
    for (Told told : random_history(seed)) {
      if (told.kind == Told::Kind::many) continue;
      if (told.kind <= Told::Kind::stream || told.kind == Told::Kind::operation) {
        told.offset = next % 4 * kCacheLine + next / 4 * kWord;
        told.words = 1;
        ++next;
      }
      teller.tell(told);
    }
    const auto images = teller.node.images();
    LeastChoices least;
    MostChoices most;
    const std::string smallest = teller.node.image(least);
    const std::string greatest = teller.node.image(most);
    EXPECT_EQ(images.count(smallest), 1U);
    EXPECT_EQ(images.count(greatest), 1U);
    for (const std::string& image : images) {
      for (Bytes at = 0; at < kMemory; ++at) {
        ASSERT_TRUE(smallest[at] == 0 || image[at] == smallest[at]) << "seed " << seed;
        ASSERT_TRUE(image[at] == 0 || image[at] == greatest[at]) << "seed " << seed;
      }
    }
    RandomChoices one(seed);
    RandomChoices same(seed);
    const std::string random = teller.node.image(one);
    EXPECT_EQ(images.count(random), 1U);
    EXPECT_EQ(teller.node.image(same), random);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, RandomHistories, testing::ValuesIn(models()), [](const auto& one) {
  const PersistenceModel& model = one.param;
  return fmt::format("{}{}_{}", to_string(model.domain), model.ddio ? "_ddio" : "_no_ddio",
                     to_string(model.transport));
});

}  // namespace
}  // namespace perdura::pmem
