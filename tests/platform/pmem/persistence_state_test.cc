// PersistenceState beyond what litmus tests can say: the set of images as a whole, over random
// histories.
#include "platform/pmem/model/persistence_state.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

namespace perdura::pmem {
namespace {

constexpr Bytes kMemory = 8 * kCacheLine;
constexpr PersistenceState::RegionId kRegion = 3;

std::vector<PersistenceModel> models() {
  std::vector<PersistenceModel> all;
  for (const auto domain :
       {PersistenceDomain::dmp, PersistenceDomain::mhp, PersistenceDomain::wsp}) {
    for (const bool ddio : {false, true}) {
      for (const auto transport : {Transport::infiniband, Transport::iwarp}) {
        all.push_back({domain, ddio, transport});
      }
    }
  }
  return all;
}

// A state and the memory that it is about.
struct Node {
  explicit Node(PersistenceModel model) : state(model) {
    state.attach(kRegion, Medium::pm, memory.data());
  }
  static std::vector<std::byte> word(std::uint8_t value, Bytes words = 1) {
    return std::vector<std::byte>(words * kWord, std::byte{value});
  }
  void changed(Bytes offset, const std::vector<std::byte>& bytes) {
    std::copy(bytes.begin(), bytes.end(), memory.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  // The whole memory as recovery finds it.
  std::string image(Choices& choices) {
    std::string found(reinterpret_cast<const char*>(memory.data()), memory.size());
    for (const auto& survivor : state.image(choices)) {
      std::memcpy(&found[survivor.place.offset], survivor.bytes.data(), kCacheLine);
    }
    return found;
  }
  std::set<std::string> images() {
    std::set<std::string> all;
    for (Enumerator every; every.next();) all.insert(image(every));
    return all;
  }

  std::vector<std::byte> memory = std::vector<std::byte>(kMemory);
  PersistenceState state;
};

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

// What a history consists of: told to any number of states alike.
struct Told {
  enum class Kind : std::uint8_t {
    store,
    stream,
    flush,
    clflush,
    fence,
    operation,
    cover,
    completed,
    received,
    seen,
    many,  // durable stores, so many that the state tidies up
  };
  Kind kind = Kind::store;
  std::size_t writer = 0;
  std::size_t connection = 0;
  RemoteKind remote = RemoteKind::posted;
  RemoteFlags flags;
  std::size_t of_connection = 0;  // the operation meant
  Bytes offset = 0;
  Bytes words = 1;
  std::uint8_t value = 0;
  // Who knows more finds fewer images; who has done more may find more.
  bool is_knowledge() const {
    return kind == Kind::flush || kind == Kind::clflush || kind == Kind::fence ||
           kind == Kind::completed || kind == Kind::received || kind == Kind::seen;
  }
};

std::vector<Told> random_history(std::uint64_t seed) {
  RandomChoices random(seed);
  std::vector<Told> history;
  std::array<std::vector<RemoteKind>, 2> operations;
  std::size_t changes = 0;
  for (int i = 0; i < 24; ++i) {
    Told told;
    told.writer = random.choose(2);
    told.connection = random.choose(2);
    // Two lines, of two words each.
    told.offset = random.choose(2) * kCacheLine + random.choose(2) * kWord;
    told.words = told.offset % kCacheLine == 0 && random.choose(3) == 0 ? 2 : 1;
    told.value = static_cast<std::uint8_t>(1 + i);
    told.kind = static_cast<Told::Kind>(random.choose(10));
    auto& issued = operations[told.connection];
    switch (told.kind) {
      case Told::Kind::store:
      case Told::Kind::stream:
        if (++changes > 6) continue;
        break;
      case Told::Kind::operation:
        if (++changes > 6) continue;
        told.remote = static_cast<RemoteKind>(random.choose(4));
        told.flags = {random.choose(4) == 0, random.choose(4) == 0};
        issued.push_back(told.remote);
        break;
      case Told::Kind::cover:
        if (random.choose(8) != 0) continue;
        told.kind = Told::Kind::many;
        break;
      case Told::Kind::completed:
      case Told::Kind::received:
        if (issued.empty()) continue;
        told.of_connection = random.choose(issued.size());
        if (told.kind == Told::Kind::received && issued[told.of_connection] != RemoteKind::posted) {
          continue;
        }
        break;
      default:
        break;
    }
    history.push_back(told);
  }
  return history;
}

struct Teller {
  explicit Teller(PersistenceModel model) : node(model) {
    connections = {node.state.connect(), node.state.connect(!model.ddio)};
  }
  void tell(const Told& told) {
    PersistenceState& state = node.state;
    const PersistenceState::Place place{kRegion, told.offset};
    const auto bytes = Node::word(told.value, told.words);
    const void* writer = &writers[told.writer];
    switch (told.kind) {
      case Told::Kind::store:
        state.store(writer, place, bytes);
        node.changed(told.offset, bytes);
        break;
      case Told::Kind::stream:
        state.stream(writer, place, bytes);
        node.changed(told.offset, bytes);
        break;
      case Told::Kind::flush:
        state.flush(writer, place, told.words * kWord);
        break;
      case Told::Kind::clflush:
        state.flush(writer, place, told.words * kWord, Flush::clflush);
        break;
      case Told::Kind::fence:
        state.fence(writer);
        break;
      case Told::Kind::operation: {
        const auto operation = state.post(connections[told.connection], told.remote, told.flags);
        if (told.remote == RemoteKind::flush_persistence) {
          state.cover(operation, place, told.words * kWord);
        } else if (told.remote != RemoteKind::read) {
          state.place(operation, place, bytes);
          node.changed(told.offset, bytes);
        }
        break;
      }
      case Told::Kind::cover:
        break;
      case Told::Kind::completed:
        state.completed(
            {connections[told.connection], static_cast<std::uint32_t>(told.of_connection)});
        break;
      case Told::Kind::received:
        state.received(
            {connections[told.connection], static_cast<std::uint32_t>(told.of_connection)});
        break;
      case Told::Kind::seen:
        state.seen(place, told.words * kWord);
        break;
      case Told::Kind::many:
        for (int i = 0; i < 300; ++i) {
          const PersistenceState::Place apart{kRegion, 5 * kCacheLine};
          const auto value = Node::word(static_cast<std::uint8_t>(i));
          state.store(&writers[2], apart, value);
          node.changed(apart.offset, value);
          state.flush(&writers[2], apart, kWord);
          state.fence(&writers[2]);
        }
        break;
    }
  }

  Node node;
  std::array<char, 3> writers{};
  std::array<PersistenceState::ConnectionId, 2> connections{};
};

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
