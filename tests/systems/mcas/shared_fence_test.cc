// Puts that share a fence, as those of requests that have arrived together, and erases among them,
// cut off after each store, flush and fence: recovery finds for each key what was durable last, or
// something that was put since.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "tests/support/explored_text.h"
#include "tests/support/seed.h"
#include "tests/systems/mcas/engine_support.h"

namespace perdura::systems::mcas {
namespace {

using namespace test;

class SharedFence : public testing::TestWithParam<EngineKind> {
 protected:
  using MaybeValue = std::optional<std::string>;
  static constexpr std::uint64_t kKeys = 12;

  SharedFence()
      : live_(Image(shape_.size()), {pmem::PersistenceDomain::dmp, false}),
        engine_(live_.region, shape_, GetParam()),
        root_(engine_.create()) {
    live_.memory->settle();
  }

  void put(const std::string& key, const std::string& value) {
    possible_.try_emplace(key, std::set<MaybeValue>{std::nullopt}).first->second.insert(value);
    const PutOutcome outcome = put_or_grow(key, value);
    now_[key] = value;
    if (outcome == PutOutcome::flushed) {
      ++flushed_;
    } else {
      ASSERT_EQ(outcome, PutOutcome::done);
      possible_[key] = {value};
    }
    EXPECT_EQ(engine_.get(key), value);
  }
  void erase(const std::string& key) {
    possible_[key].insert(std::nullopt);
    EXPECT_EQ(engine_.erase(key), now_[key].has_value());
    now_[key] = std::nullopt;
    possible_[key] = {std::nullopt};
  }
  void drain() {
    live_.region.drain();
    for (auto& [key, values] : possible_) values = {now_[key]};
  }
  void check(const Image& image) {
    ++images_;
    const std::string problem = problem_of(image);
    if (problem.empty()) return;
    ADD_FAILURE() << live_.memory->step_text() << "; "
                  << perdura::test::lost_text(image, live_.memory->visible()) << ": " << problem;
  }

  TestShape shape_ = small_shape();
  ExploredRegion live_;
  TestEngine engine_;
  Bytes root_;
  std::map<std::string, MaybeValue> now_;
  std::map<std::string, std::set<MaybeValue>> possible_;  // after a failure
  std::uint64_t flushed_ = 0;
  std::uint64_t images_ = 0;

 private:
  PutOutcome put_or_grow(const std::string& key, const std::string& value) {
    for (;;) {
      const PutOutcome outcome = engine_.engine().put_flushed(as_key(key), as_key(value));
      if (outcome != PutOutcome::must_grow) return outcome;
      while (engine_.engine().grow_step()) {
      }
    }
  }
  std::string problem_of(const Image& image) {
    PlainMemory found(image);
    TestEngine recovered(found.region(), shape_, GetParam());
    recovered.recover(root_);
    if (std::string problem = recovered.audit(); !problem.empty()) return problem;
    for (const auto& [key, values] : possible_) {
      const MaybeValue value = recovered.get(key);
      if (!values.contains(value)) {
        return fmt::format("key '{}' has '{}'", key, value.value_or("no value"));
      }
    }
    for (const auto& [key, value] : recovered.contents()) {
      if (!possible_.contains(key)) return "there is a key that nobody has put";
    }
    return "";
  }
};

INSTANTIATE_TEST_SUITE_P(, SharedFence, testing::Values(EngineKind::hstore, EngineKind::hstore_cc),
                         name_of);

TEST_P(SharedFence, LosesNothingThatWasFencedAndTearsNothing) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  live_.memory->after_step = [&] {
    if (HasFailure()) return;
    pmem::LeastChoices least;
    check(live_.memory->image(least));
    check(live_.memory->visible());
    for (int i = 0; i < 3; ++i) {
      pmem::RandomChoices choices(random());
      check(live_.memory->image(choices));
    }
  };
  const Bytes lengths[] = {4, 16, 9, 64, 200};
  for (int i = 0; i < 300 && !HasFailure(); ++i) {
    const std::uint64_t number = random() % kKeys;
    const std::string key = text_of(number, number % 4 == 0 ? 20 : 0);
    const std::uint64_t what = random() % 8;
    if (what == 0) {
      erase(key);
    } else if (what == 1) {
      drain();
    } else {
      put(key, text_of(random() % 100, lengths[random() % 5]));
    }
  }
  EXPECT_EQ(flushed_ > 0, GetParam() == EngineKind::hstore) << "a log knows one change only";
  EXPECT_GT(images_, 1000U);
}

// All images, of puts that leave few lines open at a time: one key several times in one line, keys
// that are new in one home and beside it, and an entry that is free again.
TEST_P(SharedFence, EveryImageHasWhatWasPutOrWasThereBefore) {
  live_.memory->after_step = [&] {
    if (!HasFailure()) live_.memory->for_each_image([&](const Image& image) { check(image); });
  };
  for (const char* value : {"first", "second", "third"}) put("key", value);
  drain();
  put("key", "fourth");
  put("another", "beside it");
  put("key", text_of(1, 20));
  put("key", "inlined again");
  put("another", "value");
  erase("key");
  put("key", "new");
  put("third", text_of(2, 64));
  put("third", "inlined");
  drain();
  EXPECT_GT(images_, 100U);
}

// What a shard's batch of updates of small values saves.
TEST_P(SharedFence, IsTheOnlyOneOfSmallUpdates) {
  FreshEngine fresh(shape_of(128, 63, 16 * KiB, 64 * KiB, 16), GetParam());
  for (std::uint64_t i = 0; i < 8; ++i) fresh.engine.put(text_of(i, 8), "value");
  const std::uint64_t before = pmem::thread_write_meter().writes().local_store.fences;
  for (std::uint64_t i = 0; i < 8; ++i) {
    fresh.engine.engine().put_flushed(as_key(text_of(i, 8)), as_key("another"));
  }
  EXPECT_EQ(pmem::thread_write_meter().writes().local_store.fences - before,
            GetParam() == EngineKind::hstore ? 0U : 16U);
}

}  // namespace
}  // namespace perdura::systems::mcas
