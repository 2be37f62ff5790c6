// Active data objects may write to all of their pool's memory, the engine's table included.
// Whatever they write there, with whatever the shard does next to that pool, no other pool changes,
// nothing outside of the pool's memory does, and nothing but DamagedPool is thrown.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "systems/mcas/pools.h"
#include "systems/mcas/reservation.h"
#include "tests/support/platforms.h"
#include "tests/support/seed.h"
#include "tests/systems/bucket_hash/explored_memory.h"
#include "tests/systems/mcas/pools/support.h"

namespace perdura::systems::mcas {
namespace {

using perdura::test::Image;
using perdura::test::PlainMemory;
using test::as_key;

constexpr const char* kDamaged = "damaged";
constexpr const char* kNeighbor = "neighbor";
constexpr int kKeys = 12;

std::string key_of(int number) {
  return number % 3 == 0 ? "a long key, outside of its entry " + std::to_string(number)
                         : "key " + std::to_string(number);
}
// Inlined ones, such in slots, and such of several lines outside of regions.
std::string value_of(int number, char first) {
  static constexpr std::array<std::size_t, 4> kLengths{5, 60, 900, 7000};
  return std::string(kLengths[static_cast<std::size_t>(number) % kLengths.size()], first);
}

Parameters parameters_of(const std::string& engine) {
  return Parameters::of(objects::Config{
      .memory = 512 * KiB,
      .max_message_value = 256,
      .sessions = 1,
      .parameters = {
          {"engine", engine}, {"first_segment", 8U}, {"pools", 4U}, {"max_key_size", 64U}}});
}

using Contents = std::map<std::string, std::string>;

void put(Engine& engine, const std::string& key, const std::string& value) {
  for (;;) {
    const PutOutcome outcome = engine.put(as_key(key), as_key(value));
    if (outcome != PutOutcome::must_grow) return;
    while (engine.grow_step()) {
    }
  }
}

// Memory with two pools that have keys of all kinds.
class DamagedMemory {
 public:
  explicit DamagedMemory(const std::string& engine)
      : parameters_(parameters_of(engine)),
        memory_(parameters_.extent().first + parameters_.extent().size()) {
    restart();
    for (const char* name : {kDamaged, kNeighbor}) {
      Engine& of = *(*pools_->create(name, 256 * KiB))->engine;
      for (int i = 0; i < kKeys; ++i) put(of, key_of(i), value_of(i, name[0]));
      for (int i = 0; i < kKeys; i += 5) of.erase(as_key(key_of(i)));
    }
    parts_ = pools_->parts_of(**pools_->open(kDamaged));
    parts_at_start_ = parts_;
    contents_ = contents_of_neighbor();
    start_ = {memory_.bytes().begin(), memory_.bytes().end()};
  }

  std::byte* data() { return memory_.region().data(); }
  pmem::Region& region() { return memory_.region(); }
  const std::vector<ByteRange>& parts() const { return parts_; }

  // All is as it was at first, and the attacked pool is open.
  void reset() {
    std::copy(start_.begin(), start_.end(), data());
    parts_ = parts_at_start_;
    restart();
    ASSERT_TRUE(pools_->open(kDamaged));
  }
  void restart() {
    pools_.reset();
    pools_.emplace(region(), parameters_);
  }
  Pools::Result<Pool*> attacked() { return pools_->open(kDamaged); }
  void close_damaged(Pool& pool, const DamagedPool& damage) { pools_->close_damaged(pool, damage); }

  // Nobody has worked on what does not belong to the attacked pool, but for what all pools share:
  // that lies before the first granule.
  void expect_others_unchanged() {
    // It may have been given more meanwhile, also if it is damaged by now.
    if (const Pool* const pool = pools_->opened(kDamaged)) parts_ = pools_->parts_of(*pool);
    std::vector<ByteRange> own = parts_;
    Bytes from = parameters_.extent().first;
    own.push_back({start_.size(), 0});
    for (const ByteRange& part : own) {
      ASSERT_TRUE(equal_bytes({data() + from, part.offset - from},
                              std::span(start_).subspan(from, part.offset - from)))
          << "memory of others has changed";
      from = part.end();
    }
    ASSERT_EQ(contents_of_neighbor(), contents_);
    ASSERT_EQ((*pools_->open(kNeighbor))->engine->audit(), "");
  }
  // The name may be used again, as may the memory.
  void replace_attacked() {
    const auto platform = perdura::test::make_platform("sim", 1);
    platform->start(0, 0, CompletionMode::event, [&](Thread&) -> Task<> {
      EXPECT_TRUE(co_await pools_->remove(kDamaged));
      const auto made = pools_->create(kDamaged, 256 * KiB);
      EXPECT_TRUE(made);
      if (made) put(*(*made)->engine, "key", "value");
      EXPECT_EQ(pools_->audit(), "");
    });
    platform->run();
  }

 private:
  Contents contents_of_neighbor() {
    Contents all;
    (*pools_->open(kNeighbor))->engine->iterate([&](Key key, ByteRange range) {
      std::string value(range.length, '\0');
      region().read(range.offset, std::as_writable_bytes(std::span(value)));
      all.emplace(std::string(text_of(key)), value);
    });
    return all;
  }

  Parameters parameters_;
  PlainMemory memory_;
  std::optional<Pools> pools_;
  std::vector<ByteRange> parts_;  // all memory of the damaged pool
  std::vector<ByteRange> parts_at_start_;
  Contents contents_;
  Image start_;
};

// What became of the attacked pool; each must happen, or the attacks were none.
struct Outcomes {
  int refused = 0;  // it could not be opened
  int damaged = 0;  // it was found to be damaged when it was used
  int used = 0;     // all operations went through

  void expect_all() const {
    EXPECT_GT(refused, 0);
    EXPECT_GT(damaged, 0);
    EXPECT_GT(used, 0);
  }
};

// What a shard does to a pool. Each range that the engine names is read or written, as by a get or
// a direct transfer.
void use(pmem::Region& region, Pool& pool, std::mt19937_64& random) {
  constexpr int kOperations = 40;
  Engine& engine = *pool.engine;
  std::vector<std::byte> bytes;
  for (int i = 0; i < kOperations; ++i) {
    const std::string key = key_of(static_cast<int>(random() % (kKeys + 4)));
    switch (random() % 7) {
      case 0:
      case 1:
        put(engine, key, value_of(static_cast<int>(random() % 4), 'n'));
        break;
      case 2:
        engine.erase(as_key(key));
        break;
      case 3: {
        Reservation value(pool, 1 + random() % 2000);
        const bool arrives = random() % 4 != 0;
        if (!value.range() || !arrives) break;
        const PutOutcome outcome = engine.put_reserved(as_key(key), *value.range());
        if (outcome == PutOutcome::done) value.taken();
        while (outcome == PutOutcome::must_grow && engine.grow_step()) {
        }
        break;
      }
      case 4:
        engine.iterate([&](Key, ByteRange) {});
        break;
      default:
        if (const std::optional<ByteRange> range = engine.get(as_key(key))) {
          bytes.resize(range->length);
          region.read(range->offset, bytes);
          if (random() % 2 == 0) region.write(range->offset, bytes);
        }
    }
  }
}

// The pool is used after an attack, opened anew or not, and all else is looked at.
void use_attacked(DamagedMemory& of, bool restarts, std::mt19937_64& random, Outcomes& outcomes) {
  if (restarts) of.restart();
  const auto pool = of.attacked();
  if (!pool) {
    EXPECT_EQ(pool.error(), objects::Error::failed);
    EXPECT_NE(pool.error().reason, "");
    ++outcomes.refused;
  } else {
    try {
      use(of.region(), **pool, random);
      ++outcomes.used;
    } catch (const DamagedPool& damage) {
      of.close_damaged(**pool, damage);
      EXPECT_FALSE(of.attacked());
      ++outcomes.damaged;
    }
  }
  of.expect_others_unchanged();
}

// A line for each damaged pool would be thousands.
class PoolsDamage : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { testing::internal::CaptureStderr(); }
  void TearDown() override { testing::internal::GetCapturedStderr(); }
};
INSTANTIATE_TEST_SUITE_P(All, PoolsDamage, testing::Values("hstore", "hstore-cc"),
                         test::engine_name);

// Each word of the engine's own, keys and entries, by each value that may lead elsewhere.
TEST_P(PoolsDamage, NoWordLeadsOutOfThePool) {
  DamagedMemory pools(GetParam());
  std::mt19937_64 random(1);
  Outcomes outcomes;
  std::uint64_t of_values = 0;
  std::memset(&of_values, kDamaged[0], sizeof of_values);
  const Bytes end = pools.region().size();
  const std::vector<ByteRange> parts = pools.parts();
  for (const ByteRange& part : parts) {
    for (Bytes at = part.offset; at < part.end(); at += kWord) {
      pools.reset();
      const std::uint64_t word = pools.region().load(at);
      if (word == 0 || word == of_values) continue;
      for (const std::uint64_t other :
           {std::uint64_t{0}, ~std::uint64_t{0}, word + 1, word ^ std::uint64_t{1} << 63, word << 1,
            end, end - kWord, part.end() - kWord, part.offset, random()}) {
        for (const bool restarts : {false, true}) {
          SCOPED_TRACE(testing::Message() << "word " << word << " at " << at << " becomes " << other
                                          << (restarts ? ", restarted" : ""));
          pools.reset();
          pools.region().store(at, other);
          use_attacked(pools, restarts, random, outcomes);
          if (HasFailure()) return;
        }
      }
    }
  }
  outcomes.expect_all();
}

// Random bytes over all of the memory, or in some places of it, again and again while it is used.
void attack_at_random(const std::string& engine, int rounds) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  DamagedMemory pools(engine);
  Outcomes outcomes;
  for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    pools.reset();
    const int times = static_cast<int>(1 + random() % 3);
    for (int time = 0; time < times; ++time) {
      for (const ByteRange& part : pools.parts()) {
        const std::uint64_t kind = random() % 3;
        const std::uint64_t one_of = kind == 0 ? 1 : kind == 1 ? 50 : 2000;
        for (Bytes at = part.offset; at < part.end(); at += kWord) {
          if (random() % one_of != 0) continue;
          std::uint64_t word = random();
          if (random() % 2 == 0) word %= pools.region().size();
          if (random() % 4 == 0) {  // what lies elsewhere in the pool
            std::memcpy(&word, pools.data() + part.offset + random() % (part.length / 8) * 8, 8);
          }
          std::memcpy(pools.data() + at, &word, sizeof word);
        }
      }
      use_attacked(pools, random() % 3 == 0, random, outcomes);
    }
    if (round % 20 == 0) pools.replace_attacked();
  }
  outcomes.expect_all();
}

TEST_P(PoolsDamage, RandomBytesStayInThePool) { attack_at_random(GetParam(), 500); }
TEST_P(PoolsDamage, RandomBytesTenThousandTimesStayInThePool) {
  attack_at_random(GetParam(), 10'000);
}

}  // namespace
}  // namespace perdura::systems::mcas
