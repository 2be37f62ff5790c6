// perdura fs check and fs dump of the metadata server's memory (services/fs/fs.h, FsSystem::inspect).
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "platform/base/error.h"
#include "platform/sim/sim_platform.h"
#include "systems/orion/orion.h"
#include "systems/orion/protocol/layout.h"
#include "tests/services/fs/bytes_of.h"
#include "tests/services/fs/home.h"
#include "tests/support/platforms.h"

namespace perdura::systems::orion::test {
namespace {

using fs::Damage;
using fs::kRootInode;
using fs::test::Home;

constexpr NodeId kInspected = 0;  // the metadata server
constexpr NodeId kMaker = 2;      // the client
constexpr Picoseconds kBetweenLooksAtTheEnd = Microseconds(20);

// Makes a file with contents, ends the MDS, and runs `body` on its node.
void examine(const std::function<Task<>(Thread&)>& body) {
  Home home(kOrion, {.size = 1 * MiB});
  sim::SimPlatform platform(perdura::test::erda_testbed(), fs::test::nodes_for(kOrion, 1));
  home.start(platform);
  bool has_ended = false;
  platform.start(kMaker, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await home.make(thread, {});
    {
      const auto files = co_await home.mount(thread);
      const auto session = files->attach(thread);
      const auto made = co_await session->create(kRootInode, "file", {.mode = S_IFREG | 0644}, {});
      EXPECT_TRUE(made.has_value());
      const auto data = fs::bytes_of("what it says");
      EXPECT_TRUE((co_await session->write(made->inode, 0, data, {})).has_value());
    }
    bool refused = false;
    try {
      co_await kOrion.inspect(thread, "home", false);
    } catch (const UsageError&) {
      refused = true;
    }
    EXPECT_TRUE(refused) << "this node has no metadata";
    platform.at(thread.executor.now(), [&] {
      platform.kill(kInspected);
      platform.start_service(kInspected, 7, CompletionMode::polling, [&](Thread& own) -> Task<> {
        co_await body(own);
        has_ended = true;
      });
    });
    while (!has_ended) co_await sleep_for(kBetweenLooksAtTheEnd);
  });
  platform.run();
  EXPECT_TRUE(has_ended);
}

TEST(OrionInspect, WhatIsWholeIsNotDamaged) {
  examine([](Thread& thread) -> Task<> {
    const std::vector<Damage> found = co_await kOrion.inspect(thread, "home", false);
    for (const Damage& damage : found) ADD_FAILURE() << damage.where << ": " << damage.what;
    const std::string root = co_await kOrion.dump(thread, "home", kRootInode);
    EXPECT_NE(root.find("file"), std::string::npos) << root;
  });
}

// An entry whose checksum is wrong is damage, and the repair leaves none.
TEST(OrionInspect, DamagedEntriesAreFoundAndRepaired) {
  examine([](Thread& thread) -> Task<> {
    const auto region = thread.node.open_region("home");
    // Each line that contains the name of the file: the entry of the directory.
    const std::string name = "file";
    Bytes damaged = 0;
    for (Bytes at = 0; at + kCacheLine <= region->size() && damaged == 0; at += kCacheLine) {
      std::string line(kCacheLine, '\0');
      region->read(at, std::as_writable_bytes(std::span(line.data(), line.size())));
      if (line.find(name) != std::string::npos) damaged = at + line.find(name) / 8 * 8;
    }
    EXPECT_GT(damaged, 0U);
    region->store(damaged, ~region->load(damaged));
    region->persist(damaged, sizeof(std::uint64_t));
    const std::vector<Damage> found = co_await kOrion.inspect(thread, "home", false);
    EXPECT_FALSE(found.empty());
    const std::vector<Damage> repaired = co_await kOrion.inspect(thread, "home", true);
    for (const Damage& damage : repaired) EXPECT_TRUE(damage.repaired) << damage.what;
    const std::vector<Damage> left = co_await kOrion.inspect(thread, "home", false);
    for (const Damage& damage : left) ADD_FAILURE() << damage.where << ": " << damage.what;
  });
}

// An MDS with a mirror loads the mirror's memory when it starts.
TEST(OrionInspect, ARepairThatWouldBeLostIsRefused) {
  examine([](Thread& thread) -> Task<> {
    thread.node.create_region(pair_region("home"), kCacheLine, pmem::Medium::pm);
    std::string refused;
    try {
      co_await kOrion.inspect(thread, "home", true);
    } catch (const UsageError& error) {
      refused = error.what();
    }
    EXPECT_NE(refused.find("has a mirror"), std::string::npos) << refused;
    EXPECT_TRUE((co_await kOrion.inspect(thread, "home", false)).empty());
  });
}

}  // namespace
}  // namespace perdura::systems::orion::test
