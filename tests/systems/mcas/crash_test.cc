// hstore, cut off after each store, flush and fence of its operations: each image that recovery may
// find there holds what was there before the operation or what is there after it, wastes no memory,
// and can be written again.
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

class HstoreCrash : public testing::Test {
 protected:
  HstoreCrash()
      : live_(Image(shape_.size()), kModel),
        engine_(live_.region, shape_),
        root_(engine_.create()) {
    live_.memory->settle();
  }

  std::string problem_of(const Image& image) {
    ++images_;
    PlainMemory found(image);
    TestEngine recovered(found.region(), shape_);
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
    TestEngine recovering(again.region, shape_);
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

TEST_F(HstoreCrash, LosesNothingAndInventsNothing) {
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
TEST_F(HstoreCrash, EveryImageOfAnOperationIsBeforeOrAfterIt) {
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

}  // namespace
}  // namespace perdura::systems::mcas
