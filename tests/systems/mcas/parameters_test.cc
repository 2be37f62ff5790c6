// The parameters of MCAS: what the paper says is the default, and what is impossible is said in one
// line.
#include "systems/mcas/parameters.h"

#include <gtest/gtest.h>

#include "platform/base/error.h"
#include "systems/mcas/pools.h"
#include "systems/mcas/protocol/messages.h"
#include "tests/systems/mcas/engine_support.h"

namespace perdura::systems::mcas {
namespace {

using perdura::test::PlainMemory;

kv::KvConfig config_of(std::uint64_t records, Bytes value, GivenParameters parameters = {}) {
  return {.key_size = 16,
          .value_size = value,
          .max_value_size = value,
          .records = records,
          .parameters = std::move(parameters)};
}

TEST(McasParameters, AreThoseOfThePaperForALargeStore) {
  const Parameters parameters = Parameters::of(config_of(10'000'000, 64));
  EXPECT_EQ(parameters.granule, 32 * MiB);
  EXPECT_EQ(parameters.engine.heap.region_size, 1 * MiB);
  EXPECT_EQ(parameters.engine.heap.longest_in_region(), 4 * KiB);
  EXPECT_EQ(parameters.engine.table.hops, 63U);
}

// The table, the keys and the values of all records, and half as much besides.
TEST(McasParameters, GiveRoomForTheRecordsWithoutWastingMuch) {
  for (const std::uint64_t records : {1'000'000, 30'000'000}) {
    for (const Bytes value : {16, 64, 1024}) {
      const Parameters parameters = Parameters::of(config_of(records, value));
      const Bytes table = parameters.engine.table.entries(parameters.engine.most_segments) * 64;
      const Bytes values = records * (value <= 16 ? 0 : value);
      EXPECT_GE(parameters.extent().size(), table + values);
      EXPECT_LE(parameters.extent().size(), (table + values) * 3 / 2 + 128 * MiB);
    }
  }
}

// However little memory is taken, there is room for an empty pool.
TEST(McasParameters, AreRefusedUnlessAPoolCanBeCreated) {
  for (const char* engine : {"hstore", "hstore-cc", "mapstore"}) {
    std::uint64_t taken = 0;
    const auto try_out = [&](GivenParameters given) {
      given["engine"] = engine;
      Parameters parameters;
      try {
        parameters = Parameters::of(config_of(4, 64, std::move(given)));
      } catch (const UsageError&) {
        return;
      }
      test::FreshEngine fresh({parameters.engine, parameters.granule, parameters.granules},
                              parameters.kind);
      EXPECT_EQ(fresh.engine.audit(), "");
      ++taken;
    };
    for (const std::uint64_t entries : {2, 8, 32, 128}) {
      for (const Bytes region : {128, 256, 1024}) {
        for (const Bytes granule : {region, 3 * region, 5 * region}) {
          for (std::uint64_t granules = 1; granules < 80; granules += granules / 4 + 1) {
            try_out({{"first_segment", entries},
                     {"heap_region", region},
                     {"granule", granule},
                     {"granules", granules}});
          }
        }
      }
    }
    EXPECT_GT(taken, 50U);
  }
}

TEST(McasParameters, MemoryOfAnotherEngineIsRefused) {
  const auto of = [](const char* engine) {
    return Parameters::of(config_of(100, 64, {{"engine", engine}}));
  };
  EXPECT_EQ(of("hstore-cc").kind, EngineKind::hstore_cc);
  EXPECT_EQ(of("hstore").kind, EngineKind::hstore);
  const Parameters parameters = of("hstore-cc");
  PlainMemory memory(parameters.extent().first + parameters.extent().size());
  Pools(memory.region(), parameters).create("pool", MiB).value();
  EXPECT_TRUE(Pools(memory.region(), parameters).open("pool"));
  try {
    Pools(memory.region(), of("hstore"));
    ADD_FAILURE() << "it is taken";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "pool 'memory' was created for another engine; remove it or use that engine");
  }
}

// What mapstore says of itself: the pool is there after a restart, and empty.
TEST(McasParameters, MapstoreKeepsPoolsAndNothingInThem) {
  const Parameters parameters = Parameters::of(config_of(100, 64, {{"engine", "mapstore"}}));
  EXPECT_EQ(parameters.kind, EngineKind::mapstore);
  PlainMemory memory(parameters.extent().first + parameters.extent().size());
  const auto key = std::as_bytes(std::span("key", 3));
  {
    Pools pools(memory.region(), parameters);
    Pool* const pool = pools.create("pool", MiB).value();
    EXPECT_EQ(pool->engine->put(key, key), PutOutcome::done);
    EXPECT_TRUE(pool->engine->get(key));
  }
  Pools pools(memory.region(), parameters);
  EXPECT_EQ(pools.audit(), "");
  Pool* const pool = pools.open("pool").value();
  EXPECT_FALSE(pool->engine->get(key));
  EXPECT_EQ(pool->engine->statistics().items, 0U);
  EXPECT_EQ(pool->engine->put(key, key), PutOutcome::done);
}

TEST(McasParameters, WhatIsImpossibleIsSaidInOneLine) {
  const auto message_of = [](GivenParameters parameters) -> std::string {
    try {
      Parameters::of(config_of(100, 64, std::move(parameters)));
    } catch (const UsageError& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(message_of({{"first_segment", 100}}),
            "mcas: first_segment is 100, but must be a power of two");
  EXPECT_EQ(message_of({{"heap_region", 3000}}),
            "mcas: heap_region is 3000, but must be a power of two");
  EXPECT_EQ(message_of({{"heap_region", 4096}, {"granule", 6000}}),
            "mcas: granule is 6000, but must be a multiple of heap_region, which is 4096");
  EXPECT_EQ(message_of({{"heap_region", 256}, {"granule", 256}, {"granules", 2}}),
            "mcas: 2 granules of 256 bytes are too few for a first segment of 128 entries; "
            "give it more memory, or set a smaller first_segment");
  EXPECT_EQ(message_of({{"segments", 32}, {"first_segment", std::uint64_t{1} << 32}}),
            "mcas: 32 segments, the first of 4294967296 entries, are more than the 1099511627776 "
            "entries that a table may have");
  EXPECT_NE(message_of({{"neighborhood", 64}}), "none");
}

TEST(McasParameters, LimitProcessesOfActiveDataObjects) {
  const auto limits_of = [](GivenParameters given) {
    return Parameters::of(objects::Config{.parameters = std::move(given)}).plugin_limits;
  };
  EXPECT_EQ(limits_of({}).cores, std::vector<unsigned>{});
  EXPECT_EQ(limits_of({}).memory, 256 * MiB);
  EXPECT_EQ(limits_of({}).isolation, Isolation::full);
  const ChildLimits given = limits_of(
      {{"plugin_cores", "2,13"}, {"plugin_memory", 64 * MiB}, {"plugin_isolation", false}});
  EXPECT_EQ(given.cores, (std::vector<unsigned>{2, 13}));
  EXPECT_EQ(given.memory, 64 * MiB);
  EXPECT_EQ(given.isolation, Isolation::none);
  for (const char* cores : {"2,", ",2", "2-4", "-1", "two", "99999999999"}) {
    EXPECT_THROW(limits_of({{"plugin_cores", cores}}), UsageError) << cores;
  }
}

// A request with the longest key and the longest value that travel in messages is one message.
TEST(McasParameters, AKeyAndAValueThatAreNoMessageAreRefused) {
  const auto takes = [](Bytes key, Bytes value) {
    try {
      Parameters::of(objects::Config{
          .memory = 64 * MiB, .max_message_value = value, .parameters = {{"max_key_size", key}}});
    } catch (const UsageError&) {
      return false;
    }
    return true;
  };
  EXPECT_TRUE(takes(kLongestKey, 0));
  EXPECT_FALSE(takes(kLongestKey + 1, 0));
  EXPECT_FALSE(takes(kLongestKey, 4 * KiB));
  EXPECT_TRUE(takes(GiB - 2 * MiB - sizeof(Request), 2 * MiB));
  EXPECT_FALSE(takes(GiB - 2 * MiB - sizeof(Request) + 1, 2 * MiB));
  EXPECT_EQ(Parameters::of(config_of(1, GiB - 512 - sizeof(Request))).max_value_size,
            GiB - 512 - sizeof(Request));
  try {
    Parameters::of(config_of(1, GiB));
    ADD_FAILURE() << "it is taken";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "mcas: a key of 512 bytes and a value of 1073741824 are more than a message has, "
                 "1073741824 bytes; lower max_key_size or the values that travel in messages");
  }
}

}  // namespace
}  // namespace perdura::systems::mcas
