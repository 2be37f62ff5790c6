// What Erda's server does in its memory, without clients and messages.
#include "systems/erda/store.h"

#include "platform/pmem/region.h"
#include "tests/systems/erda/support.h"

namespace perdura::systems::test {
namespace {

using erda::Outcome;
using erda::Phase;
using erda::Position;
using erda::Scratch;
using erda::Store;

constexpr std::uint8_t kHead = 1;
constexpr std::uint64_t kStoreKeys = 6;

const kv::KvConfig& config_of_store() {
  static const kv::KvConfig config = config_of({1, 4, 2 * KiB, 1 * KiB}, kStoreKeys);
  return config;
}

// A store and the puts and deletes that its server does.
class Opened {
 public:
  explicit Opened(Node& node) : store(node, "pool", config_of_store(), {}) {}

  Outcome write(std::uint64_t number, std::optional<std::uint64_t> version) {
    const Buffer key = key_of(number);
    const Buffer value = value_of(number, version.value_or(0), kValue);
    Buffer object(kObject);
    const Bytes size = store.format().encode(
        key, version ? std::optional<kv::Value>(value) : std::nullopt, object);
    return store.write_version(!version, stored(key), store.table().find(key),
                               std::span(object).first(size), scratch);
  }
  void put_twice_and_delete() {
    for (const bool present : {true, true, false}) {
      for (std::uint64_t key = 0; key < kStoreKeys; ++key) {
        ASSERT_EQ(write(key, present ? std::optional(key + 1) : std::nullopt), Outcome::ok);
      }
    }
  }
  // The entry says where the client is to write, which it has not done yet.
  Store::Begun begin(std::uint64_t number, bool erase = false) {
    const Buffer key = key_of(number);
    return store.begin_version(erase, stored(key), store.table().find(key), kObject, scratch);
  }
  std::optional<hopscotch::TableEntry> entry_of(std::uint64_t number) {
    return store.table().find(key_of(number));
  }
  // Readers take an object that verifies for the version that a client was told to write there.
  void expect_empty_places() {
    EXPECT_EQ(store.space().phase(kHead), Phase::normal);
    EXPECT_EQ(store.audit(), "");
    int places = 0;
    for (std::uint64_t key = 0;; key = (key + 1) % kStoreKeys, ++places) {
      const Store::Begun begun = begin(key);
      if (begun.outcome != Outcome::ok) break;
      ASSERT_FALSE(store.is_whole(kHead, begun.position, scratch))
          << "at unit " << begun.position.units;
    }
    EXPECT_GT(places, 0);
  }
  // Objects are merged as the cleaner does it, the newest first.
  void merge(std::size_t objects) {
    const std::vector<std::uint32_t> all = store.space().region_1(kHead).objects();
    ASSERT_TRUE(store.space().promise(kHead));
    store.space().begin_merging(kHead);
    for (std::size_t i = all.size(); objects-- > 0;) {
      EXPECT_TRUE(store.merge_object(kHead, Position{all[--i]}, scratch));
    }
  }

  Store store;
  Scratch scratch = store.make_scratch();

 private:
  hopscotch::StoredKey stored(const Buffer& key) const {
    return store.layout().table().stored(key);
  }
};

void on_a_server(const std::function<void(Node&)>& body) {
  const auto platform = perdura::test::make_platform("sim", 1);
  platform->start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    body(thread.node);
    co_return;
  });
  platform->run();
}

enum class CleaningEnds { with_the_process, for_lack_of_space };

// Puts keys, deletes them, and cleans the head; cleaning ends before it has copied everything. Then
// the server starts again.
void end_cleaning_and_restart(CleaningEnds how) {
  constexpr std::size_t kObjects = 3 * kStoreKeys;
  for (std::size_t merged = 0; merged <= kObjects && !testing::Test::HasFailure(); ++merged) {
    SCOPED_TRACE(testing::Message() << merged << " objects merged");
    on_a_server([&](Node& node) {
      {
        Opened first(node);
        first.put_twice_and_delete();
        ASSERT_EQ(first.store.space().region_1(kHead).objects().size(), kObjects);
        first.merge(merged);
        if (how == CleaningEnds::for_lack_of_space) first.store.abandon_cleaning(kHead);
      }
      Opened(node).expect_empty_places();
    });
  }
}

TEST(ErdaStore, APlaceHoldsNoObjectAfterTheServerDiedWhileMerging) {
  end_cleaning_and_restart(CleaningEnds::with_the_process);
}

TEST(ErdaStore, APlaceHoldsNoObjectAfterACleaningWasAbandoned) {
  end_cleaning_and_restart(CleaningEnds::for_lack_of_space);
}

// A client was told where to write and died, so its key was restored; the next object lies behind
// that place. The server dies when it has written it and no entry refers to it yet.
TEST(ErdaStore, APlaceHoldsNoObjectAfterTheServerDiedWhileWriting) {
  on_a_server([](Node& node) {
    {
      Opened first(node);
      first.put_twice_and_delete();
      ASSERT_EQ(first.begin(0).outcome, Outcome::ok);
      first.store.restore(*first.entry_of(0));
      const hopscotch::TableEntry before = *first.entry_of(1);
      ASSERT_EQ(first.write(1, 7), Outcome::ok);
      first.store.table().set_word(before.bucket, before.word, erda::kVersionLayout);
    }
    Opened(node).expect_empty_places();
  });
}

// All keys are deleted, so cleaning copies nothing and leaves the head without a region. The server
// dies when recovery has completed that, and before it has given the head another one.
TEST(ErdaStore, APlaceHoldsNoObjectAfterACleaningThatLeftNoRegion) {
  on_a_server([](Node& node) {
    {
      Opened first(node);
      first.put_twice_and_delete();
      first.merge(3 * kStoreKeys);
      ASSERT_TRUE(first.store.space().begin_replicating(kHead));
    }
    EXPECT_EQ(Opened(node).store.space().region_1(kHead).regions(), 0U);
    Opened(node).expect_empty_places();
  });
}

// A key whose only version was never written does not exist, whichever way the request came.
TEST(ErdaStore, AKeyThatWasNeverWrittenCannotBeDeleted) {
  on_a_server([](Node& node) {
    Opened opened(node);
    ASSERT_EQ(opened.begin(1).outcome, Outcome::ok);
    EXPECT_EQ(opened.begin(1, true).outcome, Outcome::not_found);
    EXPECT_EQ(opened.write(1, std::nullopt), Outcome::not_found);
  });
}

}  // namespace
}  // namespace perdura::systems::test
