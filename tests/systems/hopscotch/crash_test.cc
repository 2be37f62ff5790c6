// Whatever store a crash follows, and whichever unflushed words it takes away: recovery finds every
// key that was in the table, once, and no other.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "systems/hopscotch/table.h"
#include "tests/support/explored_text.h"
#include "tests/support/seed.h"
#include "tests/systems/hopscotch/crash_memory.h"

namespace perdura::systems::hopscotch {
namespace {

using perdura::test::difference_text;
using perdura::test::lost_text;
using test::as_key;
using test::CrashRegion;
using test::Image;
using Contents = std::map<std::string, std::uint64_t>;

// Longer keys than the typical one, typical ones and shorter ones.
std::string numbered_key(std::uint64_t number, const Geometry& geometry) {
  std::string key = "key" + std::to_string(number);
  key.resize(number % 3 == 0 ? 30 : number % 3 == 1 ? geometry.key_size : 11, '-');
  return key;
}

Contents contents_of(const Table& table, std::uint64_t keys) {
  Contents contents;
  for (std::uint64_t number = 0; number < keys; ++number) {
    const std::string key = numbered_key(number, table.geometry());
    if (const auto found = table.find(as_key(key))) contents[key] = found->word;
  }
  return contents;
}

class HopscotchCrash : public testing::TestWithParam<Bytes> {
 protected:
  static constexpr std::uint64_t kKeys = 40;

  // The table holds `before_`, or `after_`: the operation under way may have taken effect.
  void expect_either(const Image& image) {
    ++crashes_;
    if (HasFailure()) return;
    CrashRegion crashed(image);
    Table table(crashed.region, 0, geometry_);
    table.recover();
    std::uint64_t entries = 0;
    table.for_each([&](const TableEntry&, kv::Key) { ++entries; });
    const Contents found = contents_of(table, kKeys);
    std::string wrong;
    if (found != before_ && found != after_) {
      wrong = difference_text(found, before_, after_);
    } else if (entries != found.size()) {
      wrong = fmt::format("there are {} entries of {} keys", entries, found.size());
    } else if (table.recover() != 0) {
      wrong = "recovery has left the copy of an entry";
    } else {
      wrong = table.audit();
    }
    if (wrong.empty()) return;
    ADD_FAILURE() << operation_ << "; store " << stores_ << ", "
                  << lost_text(image, live_.memory->visible) << ": " << wrong;
  }

  const Geometry geometry_{GetParam(), 4, 24};
  CrashRegion live_{Image(geometry_.size())};
  Contents before_;
  Contents after_;
  std::string operation_;
  std::uint64_t stores_ = 0;
  std::uint64_t crashes_ = 0;
};

// An entry lies in one line, or in two.
INSTANTIATE_TEST_SUITE_P(KeySize, HopscotchCrash, testing::Values(16, 24),
                         testing::PrintToStringParamName());

TEST_P(HopscotchCrash, LosesAndDuplicatesNothing) {
  const std::uint64_t seed = perdura::test::random_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  Table table(live_.region, 0, geometry_);
  live_.memory->after_store = [&] {
    ++stores_;
    expect_either(live_.memory->visible);
    expect_either(live_.memory->durable);
    for (int i = 0; i < 3; ++i) expect_either(live_.memory->possible_image(random));
  };

  std::uint64_t refused = 0;
  for (int i = 0; i < 400 && !HasFailure(); ++i) {
    const std::string key = numbered_key(random() % kKeys, geometry_);
    const std::optional<TableEntry> found = table.find(as_key(key));
    stores_ = 0;
    if (!found) {
      after_[key] = random() | 1;
      operation_ = fmt::format("operation {}, insert of {}", i, key);
      if (!table.insert(as_key(key), static_cast<std::uint8_t>(random()), after_[key])) {
        ++refused;
        after_ = before_;
      }
    } else if (random() % 4 == 0) {
      after_.erase(key);
      operation_ = fmt::format("operation {}, delete of {}", i, key);
      table.clear(found->bucket);
    } else {
      after_[key] = random() | 1;
      operation_ = fmt::format("operation {}, update of {}", i, key);
      table.set_word(found->bucket, after_[key]);
    }
    before_ = after_;
  }
  EXPECT_GT(refused, 0u);
  EXPECT_GT(table.movements(), 0u);
  EXPECT_GT(crashes_, 5000u);
}

}  // namespace
}  // namespace perdura::systems::hopscotch
