// The store behind the log, cut off after every single store: by a power failure, which leaves any
// part of what was not flushed, and by the end of the process, which leaves all that is visible.
// Recovery, itself cut off now and then, finds everything acknowledged, and nothing else.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/systems/write_ahead/driver.h"

namespace perdura::systems::write_ahead {
namespace {

using namespace test;
using Contents = std::map<std::string, std::string>;

constexpr std::uint64_t kKeys = 20;

std::string random_value(std::mt19937_64& random) {
  const std::string word = std::to_string(random());
  return (word + word).substr(0, random() % 3 == 0 ? random() % 32 : 24);
}

bool holds(Store& store, const Contents& contents) {
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    const std::string key = key_number(i);
    const auto expected = contents.find(key);
    const std::optional<std::string> value = value_of(store, key);
    if (value.has_value() != (expected != contents.end())) return false;
    if (value && *value != expected->second) return false;
  }
  return true;
}

std::string describe(const Contents& contents) {
  std::string text;
  for (const auto& [key, value] : contents) text += key + "=" + value + " ";
  return text;
}

struct Checker {
  Shape shape;
  std::mt19937_64 random;
  Contents before;
  Contents after;
  std::uint64_t crashes = 0;

  void check(const Image& image, int depth = 0) {
    ++crashes;
    if (depth == 0 && random() % 60 == 0) check_cut_off_recovery(image);
    Recovered crashed(shape, image);
    ASSERT_TRUE(holds(crashed.store, before) || holds(crashed.store, after))
        << "before: " << describe(before) << "\nafter: " << describe(after);
    // It goes on working: whatever the table and the free objects are, they take a new key or are
    // full.
    const std::string fresh = "a fresh key, one";
    if (put_redo(crashed.store, fresh, "fresh")) {
      while (crashed.store.apply_next()) {
      }
      ASSERT_EQ(value_of(crashed.store, fresh), "fresh");
    }
    ASSERT_TRUE(holds(crashed.store, before) || holds(crashed.store, after));
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
      check(memory->visible, 1);
      check(memory->possible_image(random), 1);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
};

// Redo Logging: a put is acknowledged when its record is durable in the log, a delete when its
// entry is gone.
class Crash : public testing::TestWithParam<std::uint64_t> {
 protected:
  const Shape shape_ = small_shape(GetParam());
};
INSTANTIATE_TEST_SUITE_P(LogSlots, Crash, testing::Values(8, 40),
                         testing::PrintToStringParamName());

// A put is acknowledged when its record is durable in the log, a delete when its entry is gone.
TEST_P(Crash, OfRedoLoggingLosesNothingAndInventsNothing) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Checker checker{shape_, std::mt19937_64(seed), {}, {}};
  std::mt19937_64 random(seed + 1);
  Recovered live(shape_, Image(shape_.pool_size()));
  live.memory->after_store = [&] {
    checker.check(live.memory->visible);
    checker.check(live.memory->durable);
    checker.check(live.memory->possible_image(checker.random));
  };
  std::uint64_t refused = 0;
  for (int i = 0; i < 250 && !testing::Test::HasFatalFailure(); ++i) {
    const std::string key = key_number(random() % kKeys);
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
        const std::string value = random_value(random);
        checker.after[key] = value;
        if (!put_redo(live.store, key, value)) {
          checker.after = checker.before;
          ++refused;
        }
      }
    }
    checker.before = checker.after;
    ASSERT_TRUE(holds(live.store, checker.before));
  }
  EXPECT_GT(refused, 0u);
  EXPECT_GT(checker.crashes, 3000u);
}

// Read After Write: a put is acknowledged when its record is visible, whether the server has seen
// it or not, and several clients write at once.
TEST_P(Crash, OfReadAfterWriteLosesNothingVisible) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Checker checker{shape_, std::mt19937_64(seed), {}, {}};
  std::mt19937_64 random(seed + 1);
  Recovered live(shape_, Image(shape_.pool_size()));
  live.memory->after_store = [&] { checker.check(live.memory->visible); };

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
  for (int i = 0; i < 1500 && !testing::Test::HasFatalFailure(); ++i) {
    const std::string key = key_number(random() % kKeys);
    switch (random() % 8) {
      case 0: {
        const std::optional<Result<void>> erased = [&]() -> std::optional<Result<void>> {
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
          const std::string value = random_value(random);
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
    ASSERT_TRUE(holds(store, checker.before)) << "operation " << i;
  }
  EXPECT_GT(completed, 100u);
}

}  // namespace
}  // namespace perdura::systems::write_ahead
