// Positions, laps, and the index of the log.
#include "systems/write_ahead/log.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace perdura::systems::write_ahead {
namespace {

kv::Key as_key(const std::string& text) { return std::as_bytes(std::span(text)); }

struct LogTest : testing::Test {
  LogTest() {
    kv::KvConfig config;
    config.records = 4;
    config.parameters = {{"log_slots", 16}};
    shape = Shape(config, Parameters::of(config, "a-system", 2));
    memory.resize(shape.pool_size() / kWord);
    region = std::make_unique<pmem::Region>("log", pmem::Medium::pm,
                                            reinterpret_cast<std::byte*>(memory.data()),
                                            shape.pool_size(), nullptr, nullptr);
    log = std::make_unique<Log>(*region, shape);
  }
  LogEntry& append(const std::string& key) {
    return log->append(as_key(key), 0, LogEntry::State::verified, 0);
  }
  Shape shape;
  std::vector<std::uint64_t> memory;
  std::unique_ptr<pmem::Region> region;
  std::unique_ptr<Log> log;
};

TEST_F(LogTest, TheReplayStartIsStoredOncePerQuarter) {
  const auto stores = [] { return pmem::thread_write_meter().writes().local_store.stores; };
  const std::uint64_t before = stores();
  for (int i = 0; i < 160; ++i) {
    append("key" + std::to_string(i % 5));
    log->advance();
    EXPECT_LT(log->applied() - log->replay_start(), 4u);
  }
  EXPECT_EQ(stores() - before, 40u);
  EXPECT_EQ(region->load(kReplayStartOffset), 160u);
  EXPECT_EQ(log->lap(log->tail()), 10u);
}

TEST_F(LogTest, IsFullWhenTheSlotAfterItIsStillNeeded) {
  for (int i = 0; i < 16; ++i) {
    EXPECT_FALSE(log->full());
    append("key");
  }
  EXPECT_TRUE(log->full());
  for (int i = 0; i < 4; ++i) log->advance();
  EXPECT_FALSE(log->full());
}

TEST_F(LogTest, FindsTheNewestRecordOfAKeyAndThoseBefore) {
  std::mt19937_64 random(4);
  std::map<std::string, std::vector<Position>> model;
  for (int i = 0; i < 5000; ++i) {
    if (!log->full() && random() % 2 == 0) {
      const std::string key = "key" + std::to_string(random() % 6);
      model[key].push_back(log->tail());
      append(key);
    } else if (log->pending()) {
      log->advance();
      if (random() % 5 == 0) log->reclaim();
    }
    for (int k = 0; k < 7; ++k) {
      const std::string key = "key" + std::to_string(k);
      Position found = log->newest(as_key(key));
      const std::vector<Position>& positions = model[key];
      for (auto p = positions.rbegin(); p != positions.rend() && *p >= log->replay_start(); ++p) {
        ASSERT_EQ(found, *p);
        found = log->older(found);
      }
      ASSERT_EQ(found, kNoPosition);
    }
  }
}

TEST_F(LogTest, GoesOnOneLapLaterAfterARestart) {
  for (int i = 0; i < 7; ++i) append("key");
  log->restart();
  EXPECT_EQ(log->tail(), 16u);
  EXPECT_EQ(log->newest(as_key("key")), kNoPosition);
  Log again(*region, shape);
  EXPECT_EQ(again.tail(), 16u);
}

}  // namespace
}  // namespace perdura::systems::write_ahead
