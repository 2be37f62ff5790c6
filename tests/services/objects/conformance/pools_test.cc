// Pools and their keys (MCAS, section 3.1, Table 1).
#include <map>

#include "tests/services/objects/conformance/support.h"
#include "tests/support/seed.h"

namespace perdura::objects::test {
namespace {

INSTANTIATE_TEST_SUITE_P(All, ObjectsTest, testing::ValuesIn(all_subjects()), subject_name);

// Any operation on any key, beside a map.
TEST_P(ObjectsTest, BehaveLikeAMap) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  run([seed](Session& session, Thread& thread) -> Task<> {
    std::mt19937_64 random(seed);
    const auto pool = *co_await session.create_pool("pool", 2 * MiB, {});
    DirectMemoryOf memory(session, thread, 64 * KiB);
    std::map<std::string, std::string> model;
    constexpr std::array<Bytes, 9> kLengths{0, 1, 16, 17, 100, 2048, 4096, 5000, 20'000};
    for (int i = 0; i < 1500; ++i) {
      const std::string key =
          "key " + std::to_string(random() % 12) + std::string(random() % 2 * 40, '.');
      const bool there = model.contains(key);
      const std::string value = value_of(random(), kLengths[random() % kLengths.size()]);
      const bool fits_message = value.size() <= 2048;
      const PutFlags flags{.no_overwrite = random() % 4 == 0};
      const auto refused = [&](const auto& done) { EXPECT_EQ(error_of(done), Error::exists); };
      switch (random() % 9) {
        case 0:
        case 1: {
          const auto done = co_await pool->put(as_key(key), as_key(value), flags);
          if (there && flags.no_overwrite && fits_message) {
            refused(done);
          } else if (!fits_message) {
            EXPECT_EQ(done.error(), Error::too_large);
          } else {
            EXPECT_TRUE(done);
            model[key] = value;
          }
          break;
        }
        case 2:
        case 3: {
          const auto done =
              co_await pool->put_direct(as_key(key), memory.holding(value, random() % 8), flags);
          if (there && flags.no_overwrite) {
            refused(done);
          } else {
            EXPECT_TRUE(done);
            model[key] = value;
          }
          break;
        }
        case 4: {
          const auto got = co_await pool->get(as_key(key));
          if (!there) {
            EXPECT_EQ(got.error(), Error::not_found);
          } else if (model[key].size() > 2048) {
            EXPECT_EQ(got.error(), Error::too_large);
          } else {
            EXPECT_EQ(text_of(*got), model[key]);
          }
          break;
        }
        case 5: {
          const Bytes offset = random() % 8;
          const auto got = co_await pool->get_direct(as_key(key), memory.buffer(offset, 20'000));
          if (there) {
            EXPECT_EQ(memory.text(offset, *got), model[key]);
          } else {
            EXPECT_EQ(got.error(), Error::not_found);
          }
          break;
        }
        case 6:
        case 7: {
          const Bytes length = there ? model[key].size() : 10;
          const Bytes offset = random() % (length + 1);
          const Bytes part = random() % (length - offset + 1);
          if (random() % 2 == 0) {
            const std::string bytes = value_of(random(), part);
            const auto done =
                co_await pool->put_direct_offset(as_key(key), offset, memory.holding(bytes));
            EXPECT_EQ(done.has_value(), there);
            if (there) model[key].replace(offset, part, bytes);
          } else {
            const auto done =
                co_await pool->get_direct_offset(as_key(key), offset, memory.buffer(0, part));
            EXPECT_EQ(done.has_value(), there);
            if (there) {
              EXPECT_EQ(memory.text(0, part), model[key].substr(offset, part));
            }
          }
          break;
        }
        default: {
          const auto done = co_await pool->erase(as_key(key));
          EXPECT_EQ(done.has_value(), there);
          model.erase(key);
        }
      }
    }
    EXPECT_EQ((co_await pool->attributes())->items, model.size());
    for (const auto& [key, value] : model) {
      EXPECT_EQ((co_await pool->attributes(as_key(key)))->value_length, value.size());
    }
  });
}

TEST_P(ObjectsTest, PoolsAreCreatedOpenedClosedAndDeleted) {
  run([](Session& session, Thread&) -> Task<> {
    EXPECT_EQ(error_of(co_await session.open_pool("a", {})), Error::not_found);
    EXPECT_EQ(error_of(co_await session.create_pool("", MiB, {})), Error::invalid);
    EXPECT_EQ((co_await session.create_pool(std::string(64, 'n'), MiB, {})).error(),
              Error::invalid);
    EXPECT_EQ((co_await session.create_pool(std::string_view("a\0b", 3), MiB, {})).error(),
              Error::invalid);
    EXPECT_EQ(error_of(co_await session.create_pool("a", 0, {})), Error::invalid);
    {
      const auto pool = *co_await session.create_pool("a", MiB, {.create_only = true});
      EXPECT_TRUE(co_await pool->put(as_key("key"), as_key("of a"), {}));
      const auto other = *co_await session.open_pool("b", {.create_on_demand = true}, MiB);
      EXPECT_EQ(error_of(co_await other->get(as_key("key"))), Error::not_found);
      EXPECT_TRUE(co_await other->put(as_key("key"), as_key("of b"), {}));
      EXPECT_EQ((co_await session.create_pool("a", MiB, {.create_only = true})).error(),
                Error::exists);
      const auto again = *co_await session.create_pool("a", MiB, {});
      EXPECT_EQ(text_of(*co_await again->get(as_key("key"))), "of a");
      EXPECT_EQ(error_of(co_await session.delete_pool("a")), Error::busy);
      EXPECT_TRUE(co_await pool->close());
      EXPECT_EQ(error_of(co_await session.delete_pool("a")), Error::busy);
      EXPECT_TRUE(co_await again->close());
      EXPECT_TRUE(co_await session.delete_pool("a"));
      EXPECT_EQ(error_of(co_await session.delete_pool("a")), Error::not_found);
      EXPECT_EQ(text_of(*co_await other->get(as_key("key"))), "of b");
    }
    const auto pool = *co_await session.create_pool("a", MiB, {});
    EXPECT_EQ((co_await pool->attributes())->items, 0U);
    EXPECT_EQ((co_await session.statistics())->pools, 2U);
  });
}

// As often as one likes, and many at once, but not without limit: a client has no claim to the
// shard's memory.
TEST_P(ObjectsTest, PoolsAreOpenedManyTimes) {
  run([](Session& session, Thread&) -> Task<> {
    EXPECT_TRUE(co_await session.create_pool("pool", MiB, {}));
    for (int round = 0; round < 2; ++round) {
      std::vector<std::unique_ptr<Pool>> open;
      for (;;) {
        auto pool = co_await session.open_pool("pool", {});
        if (!pool) {
          EXPECT_EQ(pool.error(), Error::out_of_space);
          break;
        }
        open.push_back(std::move(*pool));
        if (open.size() == 100'000) break;
      }
      EXPECT_GE(open.size(), 1000U);
      EXPECT_LT(open.size(), 100'000U);
      EXPECT_TRUE(co_await open.back()->put(as_key("key"), as_key("value"), {}));
      for (const auto& pool : open) EXPECT_TRUE(co_await pool->close());
    }
  });
}

// A pool that is full keeps what it has, and leaves the shard's memory to others.
TEST_P(ObjectsTest, APoolHasNoMoreMemoryThanItsSize) {
  run([](Session& session, Thread& thread) -> Task<> {
    const auto small = *co_await session.create_pool("small", 512 * KiB, {});
    DirectMemoryOf memory(session, thread, MiB);
    const std::string value = value_of(1, 1500);
    std::uint64_t stored = 0;
    for (;; ++stored) {
      const std::string key = "key " + std::to_string(stored);
      auto putting = stored % 2 == 0 ? small->put(as_key(key), as_key(value), {})
                                     : small->put_direct(as_key(key), memory.holding(value), {});
      const auto done = co_await std::move(putting);
      if (done) continue;
      EXPECT_EQ(done.error(), Error::out_of_space);
      break;
    }
    EXPECT_GT(stored, 64U);
    EXPECT_LT(stored, 512 * KiB / 1500);
    for (std::uint64_t i = 0; i < stored; ++i) {
      EXPECT_EQ(text_of(*co_await small->get(as_key("key " + std::to_string(i)))), value);
    }
    EXPECT_EQ((co_await small->put_direct(as_key("key 0"), memory.buffer(0, MiB), {})).error(),
              Error::out_of_space);
    EXPECT_EQ(text_of(*co_await small->get(as_key("key 0"))), value);
    EXPECT_EQ((co_await small->attributes())->capacity, 512 * KiB);
    // Others have room, until the shard's memory is full; then no pool that finds none takes any.
    const auto other = *co_await session.create_pool("other", 64 * MiB, {});
    const auto free = [&]() -> Task<Bytes> { co_return (co_await other->attributes())->free; };
    EXPECT_GE(co_await free(), 3 * MiB);
    std::uint64_t more = 0;
    while (co_await other->put_direct(as_key("key " + std::to_string(more)),
                                      memory.buffer(0, 200 * KiB), {})) {
      ++more;
    }
    EXPECT_GT(more, 10U);
    const Bytes left = co_await free();
    EXPECT_EQ(error_of(co_await session.create_pool("none", 64 * MiB, {})), Error::out_of_space);
    EXPECT_EQ(co_await free(), left);
    // Erasing makes room again.
    EXPECT_TRUE(co_await small->erase(as_key("key 0")));
    EXPECT_TRUE(co_await small->put(as_key("key 0"), as_key(value), {}));
  });
}

TEST_P(ObjectsTest, AnOperationIsStartedAndAskedForLater) {
  run([](Session& session, Thread& thread) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", 2 * MiB, {});
    DirectMemoryOf memory(session, thread, 64 * KiB);
    std::vector<std::string> keys;
    std::vector<std::string> values;
    for (std::uint64_t i = 0; i < 40; ++i) {
      keys.push_back("key " + std::to_string(i));
      values.push_back(value_of(i, 100 + i * 40));
    }
    {
      std::vector<Pending<void>> puts;
      for (std::size_t i = 0; i < keys.size(); ++i) {
        puts.emplace_back(pool->put(as_key(keys[i]), as_key(values[i]), {}));
      }
      EXPECT_FALSE(puts.back().completed());
      // They get on while this task does something else.
      while (!puts.back().completed()) co_await session.statistics();
      for (Pending<void>& put : puts) {
        co_await put.wait_for_completion();
        EXPECT_TRUE(put.take());
      }
    }
    const std::string large = value_of(7, 30'000);
    const std::string key = "large";
    {
      Pending<void> put(pool->put_direct(as_key(key), memory.holding(large), {}));
      // Others are served meanwhile; also one that nobody asks for any more.
      { const Pending<std::vector<std::byte>> dropped(pool->get(as_key(keys[1]))); }
      EXPECT_EQ(text_of(*co_await pool->get(as_key(keys[0]))), values[0]);
      co_await put.wait_for_completion();
      EXPECT_TRUE(put.take());
    }
    {
      Pending<Bytes> get(pool->get_direct(as_key(key), memory.buffer(32 * KiB, 30'000)));
      co_await get.wait_for_completion();
      EXPECT_EQ(get.take(), 30'000U);
      EXPECT_EQ(memory.text(32 * KiB, 30'000), large);
    }
    Pending<std::vector<std::byte>> none(pool->get(as_key("none such")));
    co_await none.wait_for_completion();
    EXPECT_EQ(none.take().error(), Error::not_found);
  });
}

TEST_P(ObjectsTest, AShardCountsWhatItDoes) {
  run([](Session& session, Thread& thread) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", MiB, {});
    DirectMemoryOf memory(session, thread, 4 * KiB);
    const auto before = *co_await session.statistics();
    EXPECT_EQ(before.sessions, 1U);
    for (int i = 0; i < 3; ++i) co_await pool->put(as_key("a"), as_key("value"), {});
    for (int i = 0; i < 4; ++i) co_await pool->get(as_key("a"));
    co_await pool->get(as_key("b"));
    co_await pool->put_direct(as_key("c"), memory.holding("value"), {});
    co_await pool->erase(as_key("a"));
    const auto after = *co_await session.statistics();
    EXPECT_EQ(after.puts - before.puts, 3U);
    EXPECT_EQ(after.gets - before.gets, 5U);
    EXPECT_EQ(after.erases - before.erases, 1U);
    EXPECT_EQ(after.direct_transfers - before.direct_transfers, 1U);
    EXPECT_EQ(after.failed_requests - before.failed_requests, 1U);
    EXPECT_EQ(after.requests - before.requests, 11U);
  });
}

}  // namespace
}  // namespace perdura::objects::test
