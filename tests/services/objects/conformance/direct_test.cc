// Direct transfers (MCAS, sections 3.1.1 and 3.1.2) beside other operations.
#include <map>

#include "tests/services/objects/conformance/support.h"

namespace perdura::objects::test {
namespace {

class Direct : public ObjectsTest {};
INSTANTIATE_TEST_SUITE_P(All, Direct, testing::ValuesIn(all_subjects()), subject_name);

// Of no, one, a few and many pieces, from and to anywhere.
TEST_P(Direct, MovesValuesOfAnyLength) {
  config_.memory = 16 * MiB;
  run([](Session& session, Thread& thread) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", 8 * MiB, {});
    DirectMemoryOf memory(session, thread, 4 * MiB);
    for (const Bytes length :
         {0UL, 1UL, 15UL, 16UL, 17UL, 4095UL, 4096UL, 4097UL, 8192UL, 100'001UL, 1'500'000UL}) {
      const std::string value = value_of(length, length);
      EXPECT_TRUE(co_await pool->put_direct(as_key("key"), memory.holding(value, 3), {}));
      const auto got = co_await pool->get_direct(as_key("key"), memory.buffer(2 * MiB + 5, length));
      EXPECT_EQ(got.value_or(~Bytes{0}), length);
      EXPECT_EQ(memory.text(2 * MiB + 5, length), value);
    }
    // Parts over the ends of pieces.
    std::string value = value_of(1, 50'000);
    EXPECT_TRUE(co_await pool->put_direct(as_key("key"), memory.holding(value), {}));
    for (const Bytes offset : {0, 1, 4090, 8192, 33'333}) {
      const std::string part = value_of(offset, 12'345);
      EXPECT_TRUE(co_await pool->put_direct_offset(as_key("key"), offset, memory.holding(part)));
      value.replace(offset, part.size(), part);
      EXPECT_TRUE(
          co_await pool->get_direct_offset(as_key("key"), offset, memory.buffer(MiB, 12'345)));
      EXPECT_EQ(memory.text(MiB, 12'345), part);
    }
    EXPECT_TRUE(co_await pool->get_direct(as_key("key"), memory.buffer(MiB, 50'000)));
    EXPECT_EQ(memory.text(MiB, 50'000), value);
  });
}

// A client overwrites a key directly and at once fills the memory that this sets free with other
// values, many at a time, while others read the key directly, or by parts: what they read is one of
// the values, whole, although it consists of many pieces.
TEST_P(Direct, ValuesAreWholeWhateverOthersDo) {
  constexpr Bytes kLength = 100'000;
  constexpr std::size_t kFillers = 18;
  constexpr std::uint64_t kRounds = 40;
  config_.parameters["direct_piece"] = 1024;
  serve();
  std::map<std::string, std::string> values;  // by their first bytes
  for (std::uint64_t number = 0; number <= kRounds; ++number) {
    std::string value = value_of(number, kLength);
    values.emplace(value.substr(0, 16), std::move(value));
  }
  bool ended = false;
  std::uint64_t read = 0;
  connect([&ended](Session& session, Thread& thread) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", 2 * MiB, {});
    DirectMemoryOf memory(session, thread, 2 * kLength);
    std::vector<std::string> fillers;
    for (std::size_t i = 0; i < kFillers; ++i) fillers.push_back("filler " + std::to_string(i));
    const DirectBuffer filling = memory.holding(std::string(5000, 'f'), kLength);
    for (std::uint64_t i = 0; i <= kRounds; ++i) {
      const std::string value = value_of(i, kLength);
      EXPECT_TRUE(co_await pool->put_direct(as_key("key"), memory.holding(value), {}));
      std::vector<Pending<void>> puts;
      for (const std::string& filler : fillers) {
        puts.emplace_back(pool->put_direct(as_key(filler), filling, {}));
      }
      for (Pending<void>& put : puts) co_await put.wait_for_completion();
      for (const std::string& filler : fillers) EXPECT_TRUE(co_await pool->erase(as_key(filler)));
    }
    std::atomic_ref(ended).store(true);
  });
  for (const bool parts : {false, true}) {
    connect([parts, &read, &ended, &values](Session& session, Thread& thread) -> Task<> {
      const auto pool = *co_await session.create_pool("pool", 2 * MiB, {});
      DirectMemoryOf memory(session, thread, kLength);
      const DirectBuffer buffer = memory.buffer(0, kLength);
      while (!std::atomic_ref(ended).load()) {
        bool got = false;
        if (parts) {
          got = (co_await pool->get_direct_offset(as_key("key"), 0, buffer)).has_value();
        } else {
          got = (co_await pool->get_direct(as_key("key"), buffer)).has_value();
        }
        if (!got) continue;
        std::atomic_ref(read).fetch_add(1);
        const std::string found = memory.text(0, kLength);
        const auto whole = values.find(found.substr(0, 16));
        EXPECT_TRUE(whole != values.end() && whole->second == found) << "a torn value";
      }
    });
  }
  platform_->run();
  EXPECT_GT(read, 20U);
}

// A client whose memory is not there any more when the shard accesses it loses its connection, and
// what it began has no effect; nobody else notices.
TEST_P(Direct, WhoTakesItsMemoryAwayBreaksItsOwnConnectionOnly) {
  serve();
  const auto there = std::shared_ptr<Platform::Barrier>(platform_->create_barrier(2));
  Bytes free = 0;
  connect([there, &free](Session& session, Thread& thread) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", 2 * MiB, {});
    free = (co_await pool->attributes())->free;
    const auto region = thread.node.create_region("gone", 64 * KiB, pmem::Medium::dram);
    DirectMemory memory = *session.register_direct_memory(*region);
    const std::string key = "key";
    // Where threads run at the same time, the shard may be done before the memory is gone.
    Result<void> done;
    do {
      Pending<void> put(pool->put_direct(as_key(key), {memory, 0, 64 * KiB}, {}));
      co_await yield();
      session.unregister_direct_memory(memory);
      co_await put.wait_for_completion();
      done = put.take();
      if (!done) break;
      EXPECT_TRUE(co_await pool->erase(as_key(key)));
      memory = *session.register_direct_memory(*region);
    } while (true);
    EXPECT_EQ(error_of(done), Error::disconnected);
    EXPECT_EQ(error_of(co_await pool->get(as_key(key))), Error::disconnected);
    EXPECT_EQ(error_of(co_await session.create_pool("other", MiB, {})), Error::disconnected);
    co_await there->arrive_and_wait();
  });
  connect([there, &free](Session& session, Thread&) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", 2 * MiB, {});
    co_await there->arrive_and_wait();
    EXPECT_TRUE(co_await pool->put(as_key("mine"), as_key("value"), {}));
    EXPECT_EQ(text_of(*co_await pool->get(as_key("mine"))), "value");
    EXPECT_EQ(error_of(co_await pool->get(as_key("key"))), Error::not_found);
    EXPECT_TRUE(co_await pool->erase(as_key("mine")));
    // The memory that was to hold the value is free again when the shard has noticed.
    while ((co_await session.statistics())->sessions > 1) {
    }
    int asked = 0;
    while ((co_await pool->attributes())->free < free && ++asked < 1'000'000) {
    }
    EXPECT_EQ((co_await pool->attributes())->free, free);
  });
  platform_->run();
}

// While a long transfer is under way others are served.
TEST_P(Direct, OthersAreServedMeanwhile) {
  config_.memory = 16 * MiB;
  serve();
  const auto there = std::shared_ptr<Platform::Barrier>(platform_->create_barrier(2));
  bool ended = false;
  std::uint64_t served = 0;
  connect([there, &ended](Session& session, Thread& thread) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", 12 * MiB, {});
    DirectMemoryOf memory(session, thread, 4 * MiB);
    const std::string value = value_of(1, 4 * MiB);
    co_await there->arrive_and_wait();
    EXPECT_TRUE(co_await pool->put_direct(as_key("large"), memory.holding(value), {}));
    std::atomic_ref(ended).store(true);
  });
  connect([there, &ended, &served](Session& session, Thread&) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", 12 * MiB, {});
    co_await there->arrive_and_wait();
    while (!std::atomic_ref(ended).load()) {
      EXPECT_TRUE(co_await pool->put(as_key("small"), as_key("value"), {}));
      ++served;
    }
  });
  platform_->run();
  // Elsewhere it depends on the cores who gets how much done.
  EXPECT_GT(served, platform_->modelled() ? 10U : 0U);
}

}  // namespace
}  // namespace perdura::objects::test
