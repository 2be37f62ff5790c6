// hstore and hstore-cc, cut off after each store, flush and fence of its operations: each image
// that recovery may find there holds what was there before the operation or what is there after it,
// wastes no memory, and can be written again.
#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "tests/support/explored_text.h"
#include "tests/support/seed.h"
#include "tests/systems/mcas/engine_support.h"

namespace perdura::systems::mcas {
namespace {

using namespace test;

constexpr std::uint64_t kKeys = 24;
constexpr pmem::PersistenceModel kModel{pmem::PersistenceDomain::dmp, false};

class HstoreCrash : public testing::TestWithParam<EngineKind> {
 protected:
  HstoreCrash()
      : live_(Image(shape_.size()), kModel),
        engine_(live_.region, shape_, GetParam()),
        root_(engine_.create()) {
    live_.memory->settle();
  }

  std::string problem_of(const Image& image) {
    ++images_;
    PlainMemory found(image);
    TestEngine recovered(found.region(), shape_, GetParam());
    undone_ += recovered.recover(root_) ? 1 : 0;
    if (const std::string problem = recovered.audit(); !problem.empty()) return problem;
    const Contents contents = recovered.contents();
    if (contents != before_ && contents != after_) {
      return perdura::test::difference_text(contents, before_, after_);
    }
    for (const char* key : {"another", "another one of more than 16 bytes"}) {
      if (!recovered.put(key, text_of(5, 64))) return "a new key finds no room";
      if (recovered.get(key) != text_of(5, 64)) return "a new key is not found";
    }
    return recovered.audit();
  }
  void check(const Image& image, std::string_view when) {
    const std::string problem = problem_of(image);
    if (problem.empty()) return;
    ADD_FAILURE() << operation_ << when << ", " << live_.memory->step_text() << "; "
                  << perdura::test::lost_text(image, live_.memory->visible()) << ": " << problem;
  }
  // The power fails again after each step of recovery.
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
    TestEngine recovering(again.region, shape_, GetParam());
    recovering.recover(root_);
  }
  void put(const std::string& key, const std::string& value, bool reserved = false) {
    operation_ =
        fmt::format("put of {}{} bytes, key '{}'", reserved ? "reserved " : "", value.size(), key);
    after_[key] = value;
    EXPECT_TRUE(reserved ? engine_.put_reserved(key, value) : engine_.put(key, value))
        << operation_;
    before_ = after_;
  }
  void erase(const std::string& key) {
    operation_ = fmt::format("erase of key '{}'", key);
    after_.erase(key);
    EXPECT_EQ(engine_.erase(key), before_.contains(key));
    before_ = after_;
  }

  TestShape shape_ = small_shape();
  ExploredRegion live_;
  TestEngine engine_;
  Bytes root_;
  Contents before_;
  Contents after_;
  std::string operation_;
  std::uint64_t images_ = 0;
  std::uint64_t undone_ = 0;
};

INSTANTIATE_TEST_SUITE_P(, HstoreCrash, testing::Values(EngineKind::hstore, EngineKind::hstore_cc),
                         name_of);

TEST_P(HstoreCrash, LosesNothingAndInventsNothing) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  std::uint64_t steps = 0;
  live_.memory->after_step = [&] {
    if (HasFailure()) return;
    pmem::LeastChoices least;
    const Image least_image = live_.memory->image(least);
    check(least_image, "");
    check(live_.memory->visible(), "");
    for (int i = 0; i < 3; ++i) {
      pmem::RandomChoices choices(random());
      check(live_.memory->image(choices), "");
    }
    if (++steps % 50 == 0) check_recovery_of(least_image);
  };
  // Filled, so that all happens that makes room; changed at random; and emptied.
  const Bytes lengths[] = {4, 16, 20, 64, 200};
  const auto key_of = [](std::uint64_t number) {
    return text_of(number, number % 3 == 0 ? 20 : 0);
  };
  for (std::uint64_t i = 0; i < kKeys; ++i) put(key_of(i), text_of(i, lengths[i % 5]));
  for (int i = 0; i < 100 && !HasFailure(); ++i) {
    const std::string key = key_of(random() % kKeys);
    if (random() % 3 == 0) {
      erase(key);
    } else {
      put(key, text_of(random() % 100, lengths[random() % 5]), random() % 4 == 0);
    }
  }
  for (std::uint64_t i = 0; i < kKeys; ++i) erase(key_of(i));
  const EngineStatistics counts = engine_.engine().statistics();
  EXPECT_GT(counts.segments_added, 1U);
  EXPECT_GT(counts.moved_items, 0U);
  EXPECT_GT(counts.regions_added, 1U);
  EXPECT_GT(counts.heap_regions_returned, 0U);
  EXPECT_GT(undone_, 0U);
  EXPECT_GT(images_, 2000U);
}

// All images, of operations that leave few lines open at a time.
TEST_P(HstoreCrash, EveryImageOfAnOperationIsBeforeOrAfterIt) {
  put("inlined", "value");
  put("outside", text_of(1, 64));
  live_.memory->settle();
  live_.memory->after_step = [&] {
    if (!HasFailure()) live_.memory->for_each_image([&](const Image& image) { check(image, ""); });
  };
  put("inlined", "another value");
  put("outside", text_of(2, 20));
  put("outside", "now inlined");
  put("inlined", text_of(3, 24));
  put("new", "value");
  put("inlined", "in reserved memory", true);
  put("inlined", "short", true);
  put("reserved", "value", true);
  erase("inlined");
  erase("new");
  put("new", "again");
  EXPECT_GT(images_, 200U);
}

// A process that dies leaves what is visible. The next one may show all of that to clients, so it
// has to be durable by then: it is what is found after the power fails, too.
class ProcessDeath : public testing::TestWithParam<EngineKind> {
 protected:
  struct Died {};

  // Executes the first operations of a history, the last of which dies after some steps, recovers,
  // and goes on. False if it needs no more steps than that.
  bool dies(const TestShape& shape, std::size_t operations, std::uint64_t steps) {
    ExploredRegion live(Image(shape.size()), kModel);
    std::optional<TestEngine> engine(std::in_place, live.region, shape, GetParam());
    const Bytes root = engine->create();
    Contents expected;
    for (std::size_t i = 0; i + 1 < operations; ++i) execute(*engine, i, expected);
    live.memory->settle();
    const Contents before = expected;
    live.memory->after_step = [&] {
      if (steps-- == 0) throw Died();
    };
    bool died = false;
    try {
      execute(*engine, operations - 1, expected);
    } catch (const Died&) {
      died = true;
    }
    live.memory->after_step = nullptr;
    live.memory->writer = this;  // the fences of the next process wait for no flushes of this one
    engine.emplace(live.region, shape, GetParam());
    engine->recover(root);
    Contents shown = engine->contents();
    EXPECT_TRUE(shown == expected || (died && shown == before));
    EXPECT_EQ(engine->audit(), "");
    check(*live.memory, shape, root, shown);
    for (std::size_t i = 0; i < 2; ++i) execute(*engine, operations - 1 + i, shown);
    check(*live.memory, shape, root, shown);
    return died;
  }

 private:
  // What is found if the power fails now.
  static void check(const ExploredMemory& memory, const TestShape& shape, Bytes root,
                    const Contents& expected) {
    for (std::uint64_t i = 0; i < 4; ++i) {
      pmem::LeastChoices least;
      pmem::RandomChoices random(i);
      PlainMemory found(i == 0 ? memory.image(least) : memory.image(random));
      TestEngine again(found.region(), shape, GetParam());
      again.recover(root);
      EXPECT_EQ(again.contents(), expected);
      EXPECT_EQ(again.audit(), "");
    }
  }
  static void execute(TestEngine& engine, std::size_t operation, Contents& expected) {
    const std::string key = text_of(operation * 7 % 11, operation % 4 == 0 ? 20 : 0);
    if (operation % 5 == 4) {
      expected.erase(key);
      engine.erase(key);
      return;
    }
    const Bytes lengths[] = {4, 64, 20, 200, 2100};
    const std::string value = text_of(operation, lengths[operation % std::size(lengths)]);
    expected[key] = value;
    EXPECT_TRUE(operation % 6 == 5 ? engine.put_reserved(key, value) : engine.put(key, value));
  }
};
INSTANTIATE_TEST_SUITE_P(, ProcessDeath, testing::Values(EngineKind::hstore, EngineKind::hstore_cc),
                         name_of);

TEST_P(ProcessDeath, WhatTheNextProcessShowsIsDurable) {
  std::uint64_t deaths = 0;
  for (std::size_t operations = 1; operations <= 40; ++operations) {
    for (const TestShape& shape : {small_shape(), shape_of(4, 63, 4 * KiB, 8 * KiB, 16)}) {
      for (std::uint64_t steps = 0; dies(shape, operations, steps) && !HasFailure(); ++steps) {
        ++deaths;
      }
    }
    ASSERT_FALSE(HasFailure()) << "operation " << operations;
  }
  EXPECT_GT(deaths, 300U);
}

}  // namespace
}  // namespace perdura::systems::mcas
