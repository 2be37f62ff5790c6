// A client whose node has a data store writes pages there by stores of its own (section 4.3.2), which no
// server sees.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "platform/runtime/work.h"
#include "systems/orion/store/local_rights.h"
#include "tests/systems/orion/group.h"

namespace perdura::systems::orion::test {
namespace {

constexpr int kLeastPages = 200;  // so many can be written at least, or the store was not filled
// Some pages of a long write are on their way to the other store before the last ones are stored.
constexpr Bytes kLongWrite = 24 * kPage;
constexpr fabric::Address kInternal{kOne, Group::kInternalPort};

enum class HowItEnds { link_breaks, mds_fails };

// An internal client is slow for a while, at some time of a write. Meanwhile its session ends, and another
// client gets its pages and writes to them. What the slow one goes on with must not reach them.
void write_slowly(HowItEnds how, Picoseconds slow_after) {
  Group group({{"client_patience_us", std::uint64_t{100'000}},
               {"free_delay_us", std::uint64_t{1000}},
               {"mds_patience_us", std::uint64_t{100'000}}});
  InodeNumber file{};
  bool begins = false;
  bool is_done = false;
  group.set_internal_client([&](Thread& thread) -> Task<> {
    while (!begins) co_await sleep_for(Microseconds(10));
    const auto files = co_await group.mount(thread);
    const auto session = files->attach(thread);
    co_await write_pages(*session, file, 0, 1, 1);
    const auto be_slow = [](Picoseconds after) -> Task<> {
      co_await sleep_for(after);
      cost_meter->spin_until(Executor::current().now() + Milliseconds(30));
      co_await yield();
    };
    thread.executor.spawn(be_slow(slow_after));
    begins = false;
    co_await session->write(file, 0, std::vector<std::byte>(kLongWrite, std::byte{250}), {});
    is_done = true;
  });
  group.run([&](Thread& thread) -> Task<> {
    const auto files = co_await group.mount(thread);
    const auto session = files->attach(thread);
    file = co_await make_file(*session);
    begins = true;
    while (begins) co_await sleep_for(Microseconds(1));
    // By then the pages that were on their way to the other store have arrived.
    co_await sleep_for(slow_after + Microseconds(30));
    if (how == HowItEnds::link_breaks) {
      co_await group.link_breaks(kInternal);
    } else {
      co_await group.power_fails(kMds);
      co_await group.comes_back(kMds);
    }
    co_await sleep_for(Milliseconds(1));
    const auto other = co_await session->create(kRootInode, "other", {.mode = S_IFREG | 0644}, {});
    EXPECT_TRUE(other.has_value());
    if (!other) co_return;
    // Writes to all pages that there are, also to those that the slow one had.
    int count = 0;
    for (bool is_written = true; is_written; ++count) {
      const auto written = co_await session->write(other->inode, static_cast<Bytes>(count) * kPage,
                                                   page_of_value(count), {});
      is_written = written.has_value();
    }
    --count;
    EXPECT_GT(count, kLeastPages);
    EXPECT_FALSE(is_done);
    while (!is_done) co_await sleep_for(Microseconds(100));
    // Whatever is read comes from the store of the slow client's node.
    co_await group.power_fails(kOther);
    co_await sleep_for(Milliseconds(1));
    co_await expect_pages(group, thread, other->inode, 0, count, 0);
  });
}

TEST(OrionInternalClient, WritesNoPagesOfASessionThatHasEnded) {
  for (const HowItEnds how : {HowItEnds::link_breaks, HowItEnds::mds_fails}) {
    for (int delay = 0; delay < 110; delay += 5) {
      SCOPED_TRACE(delay);
      write_slowly(how, Microseconds(1) * delay);
    }
  }
}

// Runs `body` with the rights to the pages of a store, as the store and sessions of its node see them.
void run_with_rights(const std::function<void(Node& node, pmem::Region& pages)>& body) {
  for (const std::string& name : perdura::test::platform_names()) {
    SCOPED_TRACE(name);
    const auto platform = perdura::test::make_platform(name, 1);
    platform->start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto pages = thread.node.create_region("pages", 4 * kPage, pmem::Medium::pm);
      body(thread.node, *pages);
      co_return;
    });
    platform->run();
  }
}

constexpr SessionId kSlow{7, 1};
constexpr SessionId kQuick{7, 2};
constexpr std::uint64_t kEpoch = 5;

TEST(OrionLocalRights, AreTakenAwayWhenNobodyIsStoring) {
  run_with_rights([](Node& node, pmem::Region& pages) {
    LocalRights store(node, pages);
    store.close();
    LocalRights::Right slow(node, &pages);
    LocalRights::Right quick(node, &pages);
    EXPECT_FALSE(slow.ask(kSlow, kEpoch)) << "the store has none to give";
    EXPECT_FALSE(slow.begin());
    store.open(kEpoch);
    EXPECT_FALSE(slow.ask(kSlow, kEpoch - 1)) << "the session may have ended before this epoch";
    EXPECT_TRUE(slow.ask(kSlow, kEpoch));
    EXPECT_TRUE(quick.ask(kQuick, kEpoch + 1));
    EXPECT_TRUE(slow.begin());
    EXPECT_TRUE(quick.begin());
    EXPECT_TRUE(store.are_idle());
    store.revoke(kSlow);
    EXPECT_FALSE(store.are_idle());
    slow.end();
    EXPECT_TRUE(store.are_idle());
    EXPECT_FALSE(slow.begin());
    quick.end();
    EXPECT_TRUE(quick.begin());
    store.close();
    EXPECT_FALSE(store.are_idle());
    quick.end();
    EXPECT_TRUE(store.are_idle());
    EXPECT_FALSE(quick.begin());
  });
}

// A process dies while it stores into a page: what it owns has no owner any more.
TEST(OrionLocalRights, AreNotWaitedForIfTheirOwnerIsDead) {
  run_with_rights([](Node& node, pmem::Region& pages) {
    LocalRights store(node, pages);
    store.open(kEpoch);
    auto slow = std::make_unique<LocalRights::Right>(node, &pages);
    EXPECT_TRUE(slow->ask(kSlow, kEpoch));
    EXPECT_TRUE(slow->begin());
    store.close();
    EXPECT_FALSE(store.are_idle());
    slow.reset();
    EXPECT_TRUE(store.are_idle());
    // Whoever gets the words of the dead one has no right of it.
    LocalRights::Right quick(node, &pages);
    EXPECT_FALSE(quick.begin());
  });
}

// A node has room for so many; others connect to the store.
TEST(OrionLocalRights, AreLimited) {
  run_with_rights([](Node& node, pmem::Region& pages) {
    LocalRights store(node, pages);
    store.open(kEpoch);
    std::vector<std::unique_ptr<LocalRights::Right>> rights;
    for (;;) {
      rights.push_back(std::make_unique<LocalRights::Right>(node, &pages));
      const bool has_right = rights.back()->ask({1, rights.size()}, kEpoch);
      if (!has_right || rights.size() > kPage / kCacheLine) break;
    }
    EXPECT_GT(rights.size(), 32U);
    EXPECT_LE(rights.size(), kPage / kCacheLine);
    rights.front().reset();
    EXPECT_TRUE(rights.back()->ask(kSlow, kEpoch));
  });
}

}  // namespace
}  // namespace perdura::systems::orion::test
