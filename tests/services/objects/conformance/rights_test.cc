// What a client may reach: the pools that it has opened, as it has opened them, and no more.
#include "tests/services/objects/conformance/support.h"

namespace perdura::objects::test {
namespace {

class Rights : public ObjectsTest {};
INSTANTIATE_TEST_SUITE_P(All, Rights, testing::ValuesIn(all_subjects()), subject_name);

// The errors of each operation of a pool.
Task<std::vector<std::optional<Error>>> errors_of_changes(Pool& pool, DirectMemoryOf& memory) {
  std::vector<std::optional<Error>> errors;
  const auto add = [&](const auto& done) { errors.push_back(error_of(done)); };
  add(co_await pool.put(as_key("key"), as_key("changed"), {}));
  add(co_await pool.put(as_key("new"), as_key("new"), {}));
  add(co_await pool.erase(as_key("key")));
  add(co_await pool.put_direct(as_key("key"), memory.holding("changed"), {}));
  add(co_await pool.put_direct_offset(as_key("key"), 0, memory.holding("ch")));
  co_return errors;
}
Task<std::vector<std::optional<Error>>> errors_of_reads(Pool& pool, DirectMemoryOf& memory) {
  std::vector<std::optional<Error>> errors;
  const auto add = [&](const auto& done) { errors.push_back(error_of(done)); };
  Buffer into(64);
  add(co_await pool.get(as_key("key"), into));
  add(co_await pool.get(as_key("key")));
  add(co_await pool.get_direct(as_key("key"), memory.buffer(64, 64)));
  add(co_await pool.get_direct_offset(as_key("key"), 0, memory.buffer(64, 2)));
  add(co_await pool.attributes(as_key("key")));
  add(co_await pool.attributes());
  co_return errors;
}

TEST_P(Rights, AReadOnlyHandleChangesNothing) {
  run([](Session& session, Thread& thread) -> Task<> {
    DirectMemoryOf memory(session, thread, 4 * KiB);
    const auto writable = *co_await session.create_pool("pool", MiB, {});
    EXPECT_TRUE(co_await writable->put(as_key("key"), as_key("value"), {}));
    for (const bool create : {false, true}) {
      const PoolFlags read_only{.read_only = true};
      const auto pool = create ? *co_await session.create_pool("pool", MiB, read_only)
                               : *co_await session.open_pool("pool", read_only);
      for (const auto error : co_await errors_of_changes(*pool, memory)) {
        EXPECT_EQ(error, Error::no_permission);
      }
      for (const auto error : co_await errors_of_reads(*pool, memory)) {
        EXPECT_EQ(error, std::nullopt) << "a read is refused";
      }
    }
    EXPECT_EQ(text_of(*co_await writable->get(as_key("key"))), "value");
    EXPECT_EQ((co_await writable->attributes())->items, 1U);
  });
}

TEST_P(Rights, AClosedHandleReachesNothing) {
  run([](Session& session, Thread& thread) -> Task<> {
    DirectMemoryOf memory(session, thread, 4 * KiB);
    const auto first = *co_await session.create_pool("pool", MiB, {});
    EXPECT_TRUE(co_await first->put(as_key("key"), as_key("value"), {}));
    EXPECT_TRUE(co_await first->close());
    const auto refused = [&]() -> Task<> {
      for (const auto error : co_await errors_of_changes(*first, memory)) {
        EXPECT_EQ(error, Error::no_permission);
      }
      for (const auto error : co_await errors_of_reads(*first, memory)) {
        EXPECT_EQ(error, Error::no_permission);
      }
      EXPECT_EQ(error_of(co_await first->close()), Error::no_permission);
    };
    co_await refused();
    // Nor when the same pool, another one or one of the same name takes its place.
    const auto again = *co_await session.open_pool("pool", {});
    co_await refused();
    EXPECT_TRUE(co_await again->close());
    EXPECT_TRUE(co_await session.delete_pool("pool"));
    const auto recreated = *co_await session.create_pool("pool", MiB, {});
    EXPECT_TRUE(co_await recreated->put(as_key("key"), as_key("other"), {}));
    co_await refused();
    EXPECT_EQ(text_of(*co_await recreated->get(as_key("key"))), "other");
  });
}

// A client that goes away, however, leaves its pools closed.
TEST_P(Rights, ASessionThatEndsClosesItsPools) {
  serve();
  const auto there = std::shared_ptr<Platform::Barrier>(platform_->create_barrier(2));
  connect([there](Session& session, Thread&) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", MiB, {});
    EXPECT_TRUE(co_await pool->put(as_key("key"), as_key("value"), {}));
    co_await there->arrive_and_wait();
  });
  connect([there](Session& session, Thread&) -> Task<> {
    co_await there->arrive_and_wait();
    // Until the shard has noticed, also on a busy host, and not for ever.
    constexpr int kMostLooks = 100'000;
    Result<void> deleted = co_await session.delete_pool("pool");
    for (int looks = 0; error_of(deleted) == Error::busy && looks < kMostLooks; ++looks) {
      co_await sleep_for(Microseconds(100));
      deleted = co_await session.delete_pool("pool");
    }
    EXPECT_EQ(error_of(deleted), std::nullopt);
    EXPECT_EQ((co_await session.statistics())->sessions, 1U);
  });
  platform_->run();
}

TEST_P(Rights, BuffersOutsideOfRegisteredMemoryAreRefused) {
  run([](Session& session, Thread& thread) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", MiB, {});
    DirectMemoryOf memory(session, thread, 4 * KiB);
    EXPECT_TRUE(co_await pool->put(as_key("key"), as_key("value of 17 bytes"), {}));
    constexpr Bytes kMost = ~Bytes{0};
    for (const DirectBuffer& buffer :
         {memory.buffer(0, 4 * KiB + 1), memory.buffer(4 * KiB, 1), memory.buffer(kMost, 2),
          memory.buffer(1, kMost), DirectBuffer{{7}, 0, 1}}) {
      EXPECT_EQ(error_of(co_await pool->put_direct(as_key("key"), buffer, {})), Error::invalid);
      EXPECT_EQ(error_of(co_await pool->get_direct(as_key("key"), buffer)), Error::invalid);
    }
    // Nor parts outside of the value.
    for (const auto& [offset, length] :
         std::vector<std::pair<Bytes, Bytes>>{{0, 18}, {17, 1}, {18, 0}, {kMost, 2}, {kMost, 0}}) {
      const DirectBuffer buffer = memory.buffer(0, length);
      EXPECT_EQ((co_await pool->put_direct_offset(as_key("key"), offset, buffer)).error(),
                Error::invalid);
      EXPECT_EQ((co_await pool->get_direct_offset(as_key("key"), offset, buffer)).error(),
                Error::invalid);
    }
    EXPECT_EQ((co_await pool->get_direct(as_key("key"), memory.buffer(0, 16))).error(),
              Error::too_large);
    EXPECT_EQ(error_of(co_await pool->put({}, as_key("value"), {})), Error::invalid);
    EXPECT_EQ(text_of(*co_await pool->get(as_key("key"))), "value of 17 bytes");
  });
}

}  // namespace
}  // namespace perdura::objects::test
