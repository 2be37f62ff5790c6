// Every key-value system in each of its small stores, full, while keys come and go. One key stays,
// and is read without a pause over a bus so slow that a READ lasts longer than the move of an item.
// It is always found, wherever the store moves it to make room for others.
#include <deque>

#include "platform/sim/sim_platform.h"
#include "services/kv/small_store.h"
#include "tests/services/kv/conformance/support.h"

namespace perdura::systems::test {
namespace {

constexpr Bytes kSmallValue = 64;
constexpr std::uint64_t kKeysOfASet = 50;  // the one that stays, and those that come and go
constexpr std::uint64_t kSets = 200;       // what is moved, and when, depends on the keys
constexpr double kSlowestBus = 16e6;       // bytes in a second: a cache line in four microseconds
constexpr std::uint32_t kReaders = 6;      // of one session, so that one is always copying
constexpr Picoseconds kApart = Nanoseconds(1700);  // their beginnings

class FullStores : public testing::TestWithParam<std::string> {
 protected:
  const kv::KvSystem& system() const { return find_kv_system(GetParam()); }

  // Inserts the keys of a set into an empty store, and deletes the oldest whenever there is no room
  // for one, but never the first. Returns how often that was read.
  std::uint64_t run(const kv::KvConfig& config, std::uint64_t set);

 private:
  Task<> insert(kv::KvSession& session, const kv::KvConfig& config, std::uint64_t number);
  Task<> read(kv::KvSession& session, const kv::KvConfig& config);
  // Asks for a key that is never there: what one lane of a session learns, others may use.
  Task<> miss(kv::KvSession& session, const kv::KvConfig& config);

  std::uint64_t stays_ = 0;
  std::uint64_t next_ = 0;            // to be inserted
  std::uint64_t end_ = 0;             // of the set
  std::deque<std::uint64_t> others_;  // that are there
  std::uint32_t reading_ = 0;         // readers that have not ended
  std::uint64_t reads_ = 0;
};

Task<> FullStores::insert(kv::KvSession& session, const kv::KvConfig& config,
                          std::uint64_t number) {
  const Buffer value = value_of(number, 1, config.value_size);
  const auto put = co_await session.put(key_of(number, config.key_size), value);
  if (put && number != stays_) others_.push_back(number);
  if (put || others_.empty()) co_return;
  EXPECT_EQ(put.error(), kv::Error::out_of_space);
  const std::uint64_t oldest = others_.front();
  others_.pop_front();
  const auto erased = co_await session.erase(key_of(oldest, config.key_size));
  if (!erased) {
    EXPECT_EQ(erased.error(), kv::Error::out_of_space);
  }
}

Task<> FullStores::read(kv::KvSession& session, const kv::KvConfig& config) {
  const Buffer key = key_of(stays_, config.key_size);
  Buffer into(config.max_value_size);
  while (next_ < end_ && !HasFailure()) {
    const auto got = co_await session.get(key, into);
    EXPECT_TRUE(got) << "key " << stays_ << " is not found while key " << next_ << " is inserted";
    if (got) {
      EXPECT_EQ(version_of(stays_, std::span(into).first(*got)), 1U);
    }
    ++reads_;
  }
  --reading_;
}

Task<> FullStores::miss(kv::KvSession& session, const kv::KvConfig& config) {
  const Buffer key = key_of(end_, config.key_size);
  Buffer into(config.max_value_size);
  while (reading_ > 0) {
    const auto got = co_await session.get(key, into);
    EXPECT_FALSE(got);
  }
}

std::uint64_t FullStores::run(const kv::KvConfig& config, std::uint64_t set) {
  stays_ = set * kKeysOfASet;
  next_ = stays_;
  end_ = stays_ + kKeysOfASet;
  others_.clear();
  reading_ = kReaders;
  reads_ = 0;
  sim::Profile profile = perdura::test::erda_testbed();
  profile.nic.pcie_bandwidth = kSlowestBus;
  sim::SimPlatform platform(profile, 3);
  platform.start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto partition = system().open(thread, "pool", config);
    co_await partition->serve();
  });
  platform.start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto session = co_await system().connect(thread, {0, 0}, config);
    co_await insert(*session, config, stays_);
    for (++next_; next_ < end_; ++next_) co_await insert(*session, config, next_);
  });
  platform.start(2, 2, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto session = co_await system().connect(thread, {0, 0}, config);
    while (next_ == stays_) co_await sleep_for(Microseconds(1));
    for (std::uint32_t i = 0; i < kReaders; ++i) {
      thread.executor.spawn(read(*session, config));
      co_await sleep_for(kApart);
    }
    co_await miss(*session, config);
  });
  platform.run();
  return reads_;
}

TEST_P(FullStores, FindTheKeyThatStays) {
  for (std::size_t store = 0; store < system().small_stores.size(); ++store) {
    kv::KvConfig config{.key_size = system().fit_key(24),
                        .value_size = system().fit_value(kSmallValue),
                        .max_value_size = system().fit_value(kSmallValue),
                        .records = kKeysOfASet,
                        .writes = 2 * kKeysOfASet,
                        .sessions = 2,
                        .parameters = {}};
    services::make_small(system(), store, config);
    for (std::uint64_t set = 0; set < kSets; ++set) {
      SCOPED_TRACE(testing::Message() << "small store " << store << ", set " << set);
      const std::uint64_t reads = run(config, set);
      ASSERT_FALSE(HasFailure());
      EXPECT_GT(reads, 0U);
    }
  }
}

std::vector<std::string> names_of_systems() {
  std::vector<std::string> names;
  for (const kv::KvSystem& system : kv_systems()) names.emplace_back(system.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(SlowBus, FullStores, testing::ValuesIn(names_of_systems()),
                         [](const testing::TestParamInfo<std::string>& one) {
                           std::string name = one.param + "_sim";
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace perdura::systems::test
