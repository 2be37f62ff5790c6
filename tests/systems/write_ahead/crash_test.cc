// The store behind the log, cut off after every single store: by a power failure, which leaves any
// part of what was not flushed, and by the end of the process, which leaves all that is visible.
// Recovery, itself cut off now and then, finds everything acknowledged, and nothing else.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/support/explored_text.h"
#include "tests/support/seed.h"
#include "tests/systems/write_ahead/driver.h"

namespace perdura::systems::write_ahead {
namespace {

using namespace test;
using Contents = std::map<std::string, std::string>;

constexpr std::uint64_t kKeys = 20;

// Mostly of the typical length.
std::string random_value(std::mt19937_64& random, const Shape& shape) {
  std::string value;
  while (value.size() < shape.max_value_size) value += std::to_string(random());
  return value.substr(0, random() % 3 == 0 ? random() % shape.max_value_size : shape.value_size);
}

Contents contents_of(Store& store) {
  Contents contents;
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    const std::string key = key_number(i);
    if (const std::optional<std::string> value = value_of(store, key)) contents[key] = *value;
  }
  return contents;
}

struct Checker {
  Shape shape;
  std::mt19937_64 random;
  Contents before;
  Contents after;
  std::string operation{};
  std::uint64_t crashes = 0;
  std::uint64_t replayed = 0;

  // `visible` is what a failure has made into the image.
  void check(const Image& image, const Image& visible, int depth = 0) {
    ++crashes;
    if (testing::Test::HasFailure()) return;
    if (depth == 0 && random() % 60 == 0) check_cut_off_recovery(image);
    Recovered crashed(shape, image);
    replayed += crashed.store.replayed();
    std::string wrong = crashed.store.audit();
    if (wrong.empty()) wrong = wrong_contents(crashed.store);
    // It goes on working: whatever the table and the free objects are, they take a new key or are
    // full.
    const std::string fresh = "a fresh key, one";
    if (wrong.empty() && put_redo(crashed.store, fresh, "fresh")) {
      while (crashed.store.apply_next()) {
      }
      if (value_of(crashed.store, fresh) != "fresh") wrong = "a new key is not found";
    }
    if (wrong.empty()) wrong = wrong_contents(crashed.store);
    if (wrong.empty()) return;
    ADD_FAILURE() << operation << (depth == 0 ? "; " : "; in recovery from that, ")
                  << perdura::test::lost_text(image, visible) << ": " << wrong;
  }

  std::string wrong_contents(Store& store) const {
    const Contents found = contents_of(store);
    if (found == before || found == after) return "";
    return perdura::test::difference_text(found, before, after);
  }

  void check_cut_off_recovery(const Image& image) {
    // Recovery runs in the constructor, so the memory is watched from outside: a first run counts
    // the stores, and each further one is cut off after one more.
    struct Cut {};
    for (std::uint64_t allowed = 0;; ++allowed) {
      auto memory = std::make_shared<CrashMemory>(image);
      std::uint64_t stores = 0;
      memory->after_store = [&] {
        if (++stores > allowed) throw Cut{};
      };
      try {
        Store store(
            {std::make_unique<pmem::Region>("pool", pmem::Medium::pm, memory->visible.data(),
                                            memory->visible.size(), memory, nullptr),
             false},
            shape);
        return;
      } catch (const Cut&) {
      }
      check(memory->visible, memory->visible, 1);
      check(memory->possible_image(random), memory->visible, 1);
      if (testing::Test::HasFailure()) return;
    }
  }
};

// Redo Logging: a put is acknowledged when its record is durable in the log, a delete when its
// entry is gone.
class Crash : public testing::TestWithParam<std::pair<std::uint64_t, Bytes>> {
 protected:
  const Shape shape_ = small_shape(GetParam().first, GetParam().second);
};
INSTANTIATE_TEST_SUITE_P(LogSlotsAndValues, Crash,
                         testing::Values(std::pair{8, 24}, std::pair{40, 24}, std::pair{8, 100}),
                         [](const auto& test) {
                           return fmt::format("{}_slots_{}_bytes", test.param.first,
                                              test.param.second);
                         });

// A put is acknowledged when its record is durable in the log, a delete when its entry is gone.
TEST_P(Crash, OfRedoLoggingLosesNothingAndInventsNothing) {
  const std::uint64_t seed = perdura::test::random_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Checker checker{shape_, std::mt19937_64(seed), {}, {}};
  std::mt19937_64 random(seed + 1);
  Recovered live(shape_, Image(shape_.pool_size()));
  live.memory->after_store = [&] {
    const Image& visible = live.memory->visible;
    checker.check(visible, visible);
    checker.check(live.memory->durable, visible);
    checker.check(live.memory->possible_image(checker.random), visible);
  };
  std::uint64_t refused = 0;
  for (int i = 0; i < 250 && !HasFailure(); ++i) {
    const std::string key = key_number(random() % kKeys);
    checker.operation = fmt::format("operation {}, of key {}", i, key);
    switch (random() % 8) {
      case 0:
        if (checker.before.contains(key)) {
          checker.after.erase(key);
          EXPECT_TRUE(live.store.erase(as_key(key))->has_value());
        } else {
          EXPECT_FALSE(live.store.erase(as_key(key))->has_value());
        }
        break;
      case 2:
        live.store.apply_next();
        break;
      default: {
        const std::string value = random_value(random, shape_);
        checker.after[key] = value;
        if (!put_redo(live.store, key, value)) {
          checker.after = checker.before;
          ++refused;
        }
      }
    }
    checker.before = checker.after;
    ASSERT_EQ(contents_of(live.store), checker.before) << checker.operation;
  }
  EXPECT_GT(refused, 0u);
  EXPECT_GT(checker.crashes, 3000u);
  EXPECT_GT(checker.replayed, 1000u);
}

// Read After Write: a put is acknowledged when its record is visible, whether the server has seen
// it or not, and several clients write at once.
TEST_P(Crash, OfReadAfterWriteLosesNothingVisible) {
  const std::uint64_t seed = perdura::test::random_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Checker checker{shape_, std::mt19937_64(seed), {}, {}};
  std::mt19937_64 random(seed + 1);
  Recovered live(shape_, Image(shape_.pool_size()));
  live.memory->after_store = [&] { checker.check(live.memory->visible, live.memory->visible); };

  struct Put {
    Position position;
    std::string key;
    std::string value;
  };
  std::vector<Put> reserved;               // clients that have an address
  std::map<std::string, Position> newest;  // complete record of a key
  Store& store = live.store;
  Log& log = store.log();
  std::uint64_t completed = 0;
  for (int i = 0; i < 1500 && !HasFailure(); ++i) {
    const std::string key = key_number(random() % kKeys);
    checker.operation = fmt::format("operation {}, of key {}", i, key);
    switch (random() % 8) {
      case 0: {
        const std::optional<kv::Result<void>> erased = [&]() -> std::optional<kv::Result<void>> {
          checker.after.erase(key);
          return store.erase(as_key(key));
        }();
        if (!erased) checker.after = checker.before;
        break;
      }
      case 1:
      case 2:
        if (log.pending()) store.verify(log.applied());
        store.apply_next();
        break;
      case 3:
        if (!reserved.empty() && random() % 8 == 0) {  // a client dies
          const std::size_t dead = random() % reserved.size();
          log.at(reserved[dead].position).state = LogEntry::State::dropped;
          reserved.erase(reserved.begin() + static_cast<long>(dead));
        }
        break;
      case 4:
      case 5:
        if (!log.full()) {
          const std::string value = random_value(random, shape_);
          if (const auto p = reserve_slot(store, key, value, 1))
            reserved.push_back({*p, key, value});
        }
        break;
      default:
        if (!reserved.empty()) {
          const std::size_t index = random() % reserved.size();
          const Put put = reserved[index];
          reserved.erase(reserved.begin() + static_cast<long>(index));
          const auto found = newest.find(put.key);
          if (found == newest.end() || found->second < put.position) {
            newest[put.key] = put.position;
            checker.after[put.key] = put.value;
          }
          write_record(store, put.position, put.key, put.value);
          ++completed;
        }
    }
    checker.before = checker.after;
    ASSERT_EQ(contents_of(store), checker.before) << checker.operation;
  }
  EXPECT_GT(completed, 100u);
}

}  // namespace
}  // namespace perdura::systems::write_ahead
