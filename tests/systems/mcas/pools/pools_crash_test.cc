// Creating and removing pools, cut off after each store, flush and fence: a pool is there with all
// that was in it, or not at all, and then nothing of its memory is lost or can be read.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

#include "platform/base/error.h"
#include "systems/mcas/pools.h"
#include "tests/support/explored_text.h"
#include "tests/support/platforms.h"
#include "tests/support/seed.h"
#include "tests/systems/bucket_hash/explored_memory.h"
#include "tests/systems/mcas/pools/support.h"

namespace perdura::systems::mcas {
namespace {

using test::as_key;

using perdura::test::ExploredRegion;
using perdura::test::Image;
using perdura::test::PlainMemory;

constexpr pmem::PersistenceModel kModel{pmem::PersistenceDomain::dmp, false};
constexpr int kMostImagesOfAStep = 64;  // in order; and some at random
constexpr std::string_view kSecret = "what only readers of the pool may see";

Parameters small_parameters(const std::string& engine) {
  return Parameters::of(objects::Config{.memory = 8 * KiB,
                                        .max_message_value = 64,
                                        .sessions = 1,
                                        .parameters = {{"engine", engine},
                                                       {"first_segment", 4},
                                                       {"neighborhood", 3},
                                                       {"heap_region", 256},
                                                       {"granule", 512},
                                                       {"pools", 3},
                                                       {"max_key_size", 32}}});
}

void put(Pool& pool, std::string_view key, std::string_view value) {
  for (;;) {
    const PutOutcome outcome = pool.engine->put(as_key(key), as_key(value));
    if (outcome == PutOutcome::done) return;
    ASSERT_EQ(outcome, PutOutcome::must_grow);
    while (pool.engine->grow_step()) {
    }
  }
}

class PoolsCrash : public testing::TestWithParam<std::string> {
 protected:
  PoolsCrash()
      : parameters_(small_parameters(GetParam())),
        live_(Image(parameters_.extent().first + parameters_.extent().size()), kModel) {}

  // What is found in each pool that is there; nothing if what is found contradicts itself.
  using Contents = std::map<std::string, std::map<std::string, std::string>>;
  Contents contents_of(Pools& pools, pmem::Region& region) {
    Contents contents;
    for (const std::string name : {"first", "second", "third"}) {
      const auto pool = pools.open(name);
      if (!pool) continue;
      auto& items = contents[name];
      (*pool)->engine->iterate([&](Key key, ByteRange range) {
        std::string value(range.length, '\0');
        region.read(range.offset, std::as_writable_bytes(std::span(value)));
        items.emplace(std::string(reinterpret_cast<const char*>(key.data()), key.size()), value);
      });
    }
    return contents;
  }

  std::string problem_of(const Image& image) {
    ++images_;
    PlainMemory found(image);
    Pools recovered(found.region(), parameters_);
    if (const std::string problem = recovered.audit(); !problem.empty()) return problem;
    const Contents contents = contents_of(recovered, found.region());
    if (recovered.count() != contents.size()) return "a pool has no name that it was given";
    if (contents != before_ && contents != after_) return "neither what was there, nor what is";
    if (contents == before_) ++found_before_;
    if (contents == after_) ++found_after_;
    if (!contents.contains("second") && holds_secret(found)) return "what was removed is there";
    // All other memory can be had, by a pool that is no other one's successor.
    std::uint64_t largest = 0;
    for (const auto& [name, items] : contents) {
      largest = std::max(largest, recovered.open(name).value()->identifier);
    }
    const auto third = recovered.create("third", 64 * KiB);
    if (!third) return contents.contains("third") ? "" : "no pool can be created";
    if ((*third)->identifier <= largest) return "an identifier is used twice";
    put(**third, "key", "value of the new pool");
    return recovered.audit();
  }
  static bool holds_secret(const PlainMemory& memory) {
    const auto bytes = memory.bytes();
    const auto secret = as_key(kSecret);
    return std::search(bytes.begin(), bytes.end(), secret.begin(), secret.end()) != bytes.end();
  }

  void check(const Image& image, std::string_view when) {
    const std::string problem = problem_of(image);
    if (problem.empty()) return;
    ADD_FAILURE() << operation_ << when << ", " << live_.memory->step_text() << "; "
                  << perdura::test::lost_text(image, live_.memory->visible()) << ": " << problem;
  }
  void check_recovery_of(const Image& image) {
    ExploredRegion again(image, kModel);
    again.memory->after_step = [&] {
      if (HasFailure()) return;
      check(again.memory->visible(), "; in recovery");
      for (std::uint64_t i = 0; i < 2; ++i) {
        pmem::RandomChoices random(i);
        check(again.memory->image(random), "; in recovery");
      }
    };
    Pools recovering(again.region, parameters_);
  }
  void explore() {
    live_.memory->after_step = [this] {
      if (HasFailure()) return;
      check(live_.memory->visible(), "");
      pmem::LeastChoices least;
      const Image least_image = live_.memory->image(least);
      check(least_image, "");
      int tried = 0;
      for (pmem::Enumerator all; tried < kMostImagesOfAStep && all.next(); ++tried) {
        check(live_.memory->image(all), "");
      }
      for (int i = 0; i < 8; ++i) {
        pmem::RandomChoices random(random_());
        check(live_.memory->image(random), "");
      }
      if (++steps_ % 8 == 0) check_recovery_of(least_image);
    };
  }

  // Removing waits between its steps, so it is a task of a thread.
  void run(std::function<Task<>(Pools&)> work) {
    const auto platform = perdura::test::make_platform("sim", 1);
    platform->start(0, 0, CompletionMode::polling, [&](Thread&) -> Task<> {
      Pools pools(live_.region, parameters_);
      co_await work(pools);
    });
    platform->run();
  }

  const std::uint32_t seed_ = perdura::test::random_seed();
  std::mt19937_64 random_{seed_};
  Parameters parameters_;
  ExploredRegion live_;
  Contents before_;
  Contents after_;
  std::string operation_;
  std::uint64_t steps_ = 0;
  std::uint64_t images_ = 0;
  std::uint64_t found_before_ = 0;
  std::uint64_t found_after_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Engines, PoolsCrash, testing::Values("hstore", "hstore-cc"),
                         test::engine_name);

TEST_P(PoolsCrash, ACreatedPoolIsThereOrNothingOfIt) {
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed_);
  run([this](Pools& pools) -> Task<> {
    put(**pools.create("first", 4 * KiB), "key", "value");
    live_.memory->settle();
    before_ = {{"first", {{"key", "value"}}}};
    after_ = before_;
    after_["second"];
    operation_ = "creating a pool";
    explore();
    EXPECT_TRUE(pools.create("second", 2 * KiB));
    co_return;
  });
  EXPECT_GT(found_before_, 50U);
  EXPECT_GT(found_after_, 0U);
}

TEST_P(PoolsCrash, ARemovedPoolIsWholeOrGoneWithAllThatWasInIt) {
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed_);
  run([this](Pools& pools) -> Task<> {
    put(**pools.create("first", 4 * KiB), "key", "value");
    Pool& second = **pools.create("second", 4 * KiB);
    for (const std::string key : {"a", "b", "c", "d", "e", "f"}) {
      put(second, key, std::string(kSecret) + key);
      before_["second"][key] = std::string(kSecret) + key;
    }
    before_["first"]["key"] = "value";
    live_.memory->settle();
    after_ = {{"first", {{"key", "value"}}}};
    operation_ = "removing a pool";
    explore();
    EXPECT_TRUE(co_await pools.remove("second"));
    before_ = after_;
    pmem::LeastChoices least;
    check(live_.memory->image(least), "; afterwards");
  });
  EXPECT_GT(found_before_, 0U);
  EXPECT_GT(found_after_, 1000U);
}

// A shard's memory that is being made is made again, or is there and empty.
TEST_P(PoolsCrash, MemoryIsMadeWholeOrAgain) {
  operation_ = "making a shard's memory";
  explore();
  Pools pools(live_.region, parameters_);
  EXPECT_GT(images_, 100U);
}

// As many pools as there is room for, and again after all of them are gone.
TEST_P(PoolsCrash, RemovingGivesEverythingBack) {
  run([this](Pools& pools) -> Task<> {
    for (int round = 0; round < 20; ++round) {
      std::set<std::uint64_t> identifiers;
      for (const std::string name : {"first", "second", "third"}) {
        const auto pool = pools.create(name, 4 * KiB);
        EXPECT_TRUE(pool) << "round " << round;
        if (!pool) co_return;
        identifiers.insert((*pool)->identifier);
        put(**pool, name, std::string(kSecret));
      }
      EXPECT_GT(*identifiers.begin(), 3U * static_cast<std::uint64_t>(round));
      EXPECT_EQ(pools.create("fourth", KiB).error(), objects::Error::out_of_space);
      EXPECT_EQ(pools.create("first", KiB).error(), objects::Error::exists);
      pools.open("first").value()->users = 1;
      EXPECT_EQ((co_await pools.remove("first")).error(), objects::Error::busy);
      pools.open("first").value()->users = 0;
      for (const std::string name : {"third", "first", "second"}) {
        EXPECT_TRUE(co_await pools.remove(name));
        EXPECT_EQ((co_await pools.remove(name)).error(), objects::Error::not_found);
      }
      EXPECT_EQ(pools.audit(), "");
    }
  });
}

}  // namespace
}  // namespace perdura::systems::mcas
