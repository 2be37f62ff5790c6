// A look-up by a session while another one changes the names.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "platform/sim/sim_platform.h"
#include "systems/orion/orion.h"
#include "tests/services/fs/home.h"
#include "tests/support/platforms.h"

namespace perdura::systems::orion::test {
namespace {

using fs::kRootInode;
using fs::test::Home;

// A file has two names, one of which is removed a while after another session has begun to look it up.
// The look-up READs the directory and the inode one after the other. It must not return the name with
// the attributes of afterwards: who finds the name finds two links.
TEST(OrionNames, ANameIsFoundWithAttributesOfTheSameTime) {
  // From an end of the removal before the look-up to one after it.
  constexpr int kDelays = 250;
  constexpr Picoseconds kStep = Nanoseconds(100);
  constexpr Picoseconds kEarliest = Microseconds(40);
  constexpr Picoseconds kPause = Microseconds(100);
  Home home(kOrion, {.size = 4 * MiB, .threads = 2});
  sim::SimPlatform platform(perdura::test::erda_testbed(), fs::test::nodes_for(kOrion, 1));
  home.start(platform);
  std::shared_ptr<fs::FileSystem> files;
  std::optional<Time> next;  // when the other session looks the name up
  int found = 0;
  int absent = 0;
  bool has_ended = false;
  platform.start(home.client(0), 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await home.make(thread, {});
    files = co_await home.mount(thread);
    const auto session = files->attach(thread);
    const auto made = co_await session->create(kRootInode, "kept", {.mode = S_IFREG | 0644}, {});
    EXPECT_TRUE(made.has_value());
    for (int i = 0; i < kDelays; ++i) {
      EXPECT_TRUE((co_await session->link(made->inode, kRootInode, "name", {})).has_value());
      next = thread.executor.now() + kPause;
      co_await sleep_for(kPause - kEarliest + i * kStep);
      EXPECT_TRUE((co_await session->unlink(kRootInode, "name", {})).has_value());
      co_await sleep_for(kPause);
    }
    has_ended = true;
  });
  platform.start(home.client(0), 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    while (!files) co_await sleep_for(kPause);
    const auto session = files->attach(thread);
    while (!has_ended) {
      if (!next) {
        co_await sleep_for(kPause / 10);
        continue;
      }
      const Time begin = *next;
      next.reset();
      // The copies are up to date but for what is to come.
      EXPECT_TRUE((co_await session->look_up(kRootInode, "name")).has_value());
      co_await sleep_for(begin - thread.executor.now());
      const auto attributes = co_await session->look_up(kRootInode, "name");
      ++(attributes ? found : absent);
      if (attributes) {
        EXPECT_EQ(attributes->links, 2U);
      }
    }
  });
  platform.run();
  EXPECT_GT(found, kDelays / 10);
  EXPECT_GT(absent, kDelays / 10);
  EXPECT_EQ(found + absent, kDelays);
}

}  // namespace
}  // namespace perdura::systems::orion::test
