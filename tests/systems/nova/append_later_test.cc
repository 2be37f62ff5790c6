// Entries that are in the log, and are applied to the inode in DRAM later.
#include "platform/sim/sim_platform.h"
#include "tests/support/explore.h"
#include "tests/systems/nova/volume_support.h"

namespace perdura::systems::nova::test {
namespace {

std::errc append_later(OpenVolume& home, std::uint64_t number, const WriteEntry& entry) {
  std::vector<std::byte> lines;
  OpenVolume::add_line(lines, entry);
  const Locked locked(*home.volume, Locked::For::appending, {number});
  return home->append(home.context, *locked[0], lines, Urgency::changes, Later{});
}

std::size_t waiting_of(OpenVolume& home, std::uint64_t number) {
  const Locked locked(*home.volume, Locked::For::appending, {number});
  const auto& waiting = locked[0]->waiting;
  return waiting == nullptr ? 0 : waiting->size();
}

TEST(NovaLater, IsBeforeAnybodyLooks) {
  run("sim", kHome, [](Thread& thread) -> Task<> {
    NoPages owner;
    OpenVolume home = co_await open_home(thread, kHome, &owner);
    const std::uint64_t file = home.create(kRootNumber, "a");
    std::uint64_t page = 0;
    const auto append = [&](std::uint64_t block) {
      const Bytes tail = home->geometry().inode_offset(file) + kTailWord;
      const std::uint64_t before = home.region->load(tail);
      EXPECT_EQ(append_later(home, file, pages(block, page++, 1, (block + 1) * kBlock, kExtends)),
                std::errc{});
      EXPECT_NE(home.region->load(tail), before) << "the entry is in the log";
    };
    // Entries of several pages of the log, whose blocks replace each other.
    for (int i = 0; i < 40; ++i) append(i % 4);
    EXPECT_EQ(waiting_of(home, file), 40U);
    EXPECT_EQ(owner.used.size(), 40U)
        << "no page is free before the entry that replaces it is applied";
    EXPECT_EQ(home.operations->attributes(file)->size, 4 * kBlock);
    EXPECT_EQ(waiting_of(home, file), 0U);
    EXPECT_EQ(owner.used.size(), 4U);
    EXPECT_EQ(home->audit(), "");
    // A reader has only applied them. The log is collected by catch_up(), or by the next operation.
    const std::uint64_t collected = home->count_of(Happened::fast_collections);
    {
      const Locked locked(*home.volume, Locked::For::changing, {file});
      const std::size_t log_pages = locked[0]->log.pages.size();
      home->catch_up(home.context, *locked[0]);
      EXPECT_LT(locked[0]->log.pages.size(), log_pages);
    }
    EXPECT_GT(home->count_of(Happened::fast_collections), collected);
    EXPECT_EQ(home->audit(), "");
    // Operations of other kinds find the entries applied, and their own follow.
    append(9);
    EXPECT_TRUE(home.operations->truncate(file, 2 * kBlock, {}).has_value());
    EXPECT_EQ(owner.used.size(), 2U);
    append(5);
    EXPECT_EQ(home.append(file, SizeEntry{made(EntryType::size, kCuts), kBlock}), std::errc{});
    EXPECT_EQ(owner.used.size(), 1U);
    append(7);
    EXPECT_EQ(home->audit(), "");
    append(3);
    {
      // An entry that is applied at once is applied after those that wait.
      std::vector<std::byte> lines;
      OpenVolume::add_line(lines, SizeEntry{made(EntryType::size, kCuts), kBlock});
      const Locked locked(*home.volume, Locked::For::appending, {file});
      EXPECT_EQ(home->append(home.context, *locked[0], lines, Urgency::frees), std::errc{});
      EXPECT_EQ(owner.used.size(), 1U);
    }
    EXPECT_EQ(home->audit(), "");
    EXPECT_TRUE(home.operations->remove(kRootNumber, "a", false, {}).has_value());
    EXPECT_TRUE(owner.used.empty());
    EXPECT_EQ(home->audit(), "");
  });
}

TEST(NovaLater, SurvivesTheEvictionOfTheInode) {
  fs::FsConfig config = kHome;
  config.parameters["cached_inodes"] = std::uint64_t{1};
  run("sim", config, [&](Thread& thread) -> Task<> {
    NoPages owner;
    OpenVolume home = co_await open_home(thread, config, &owner);
    const std::uint64_t file = home.create(kRootNumber, "a");
    for (std::uint64_t i = 0; i < 20; ++i) {
      EXPECT_EQ(append_later(home, file, pages(0, i, 1, i + 1, kExtends)), std::errc{});
    }
    for (int i = 0; i < 20; ++i) home.create(kRootNumber, std::to_string(i));
    EXPECT_EQ(waiting_of(home, file), 0U);
    EXPECT_EQ(owner.used.size(), 1U);
    EXPECT_EQ(home.operations->attributes(file)->size, 20U);
    EXPECT_EQ(append_later(home, file, pages(0, 20, 1, 21, kExtends)), std::errc{});
    home->save();
    EXPECT_EQ(owner.used.size(), 1U);
    EXPECT_EQ(home->audit(), "");
  });
}

// One thread appends while another one reads, and a third one catches up.
class NovaLaterThreads : public testing::TestWithParam<std::string> {};

TEST_P(NovaLaterThreads, ReadAndAppend) {
  constexpr std::uint64_t kAppends = 2000;
  const auto platform = perdura::test::make_platform(GetParam(), 1);
  const auto ready = platform->create_barrier(3);
  const auto done = platform->create_barrier(3);
  NoPages owner;
  OpenVolume home;
  std::uint64_t file = 0;
  std::atomic<bool> has_ended = false;
  const auto catch_up = [&](Context& context) {
    const Locked locked(*home.volume, Locked::For::changing, {file});
    home->catch_up(context, *locked[0]);
  };
  platform->start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await kNova.make(thread, "home", kHome);
    home = co_await open_home(thread, kHome, &owner);
    file = home.create(kRootNumber, "a");
    co_await ready->arrive_and_wait();
    for (std::uint64_t i = 0; i < kAppends; ++i) {
      EXPECT_EQ(append_later(home, file, pages(i % 3, i % NoPages::kCount, 1, i + 1, kExtends)),
                std::errc{});
      co_await yield();
      // The log must not fill the region, nor a page be used again before it is free, even if the
      // other threads do not run for a while.
      if (i % 500 == 499) catch_up(home.context);
    }
    has_ended = true;
    co_await done->arrive_and_wait();
    EXPECT_EQ(home.operations->attributes(file)->size, kAppends);
    EXPECT_EQ(owner.used.size(), 3U);
    EXPECT_EQ(home->audit(), "");
    home.operations.reset();
    home.volume.reset();
    home.region.reset();
  });
  platform->start(0, 1, CompletionMode::polling, [&](Thread&) -> Task<> {
    co_await ready->arrive_and_wait();
    Operations operations(*home.volume, 0);
    Bytes last = 0;
    while (!has_ended) {
      const Bytes size = operations.attributes(file)->size;
      EXPECT_GE(size, last);
      last = size;
      co_await yield();
    }
    co_await done->arrive_and_wait();
  });
  platform->start(0, 2, CompletionMode::polling, [&](Thread&) -> Task<> {
    co_await ready->arrive_and_wait();
    Context context;
    while (!has_ended) {
      catch_up(context);
      co_await yield();
    }
    co_await done->arrive_and_wait();
  });
  platform->run();
}

INSTANTIATE_TEST_SUITE_P(All, NovaLaterThreads, testing::ValuesIn(perdura::test::platform_names()),
                         [](const auto& each) { return each.param; });

// A power failure at each moment: all entries that were appended are there, those under way as a
// whole or not at all, whether they had been applied or not.
TEST(NovaLater, SurvivesAPowerFailure) {
  const auto scenario = [&](sim::Failure& failure) {
    SCOPED_TRACE(failure.text());
    sim::SimPlatform platform(perdura::test::erda_testbed(), 1);
    platform.track_durability({pmem::PersistenceDomain::dmp, false});
    failure.enable(false);
    std::uint64_t file = 0;
    Bytes durable = 0;
    Bytes under_way = 0;
    bool recovered = false;
    platform.start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      co_await kNova.make(thread, "home", kHome);
      NoPages owner;
      OpenVolume home = co_await open_home(thread, kHome, &owner);
      file = home.create(kRootNumber, "a");
      std::uint64_t page = 0;
      const auto append = [&](std::uint64_t count) -> Task<> {
        // Several entries take effect together.
        std::vector<std::byte> lines;
        for (std::uint64_t i = 0; i < count; ++i, ++page) {
          OpenVolume::add_line(lines, pages(page % 3, page, 1, page + 1, kExtends));
        }
        under_way = page;
        {
          const Locked locked(*home.volume, Locked::For::appending, {file});
          EXPECT_EQ(home->append(home.context, *locked[0], lines, Urgency::grows, Later{}),
                    std::errc{});
        }
        co_await sleep_for(Nanoseconds(1));  // what the operation has done takes until then
        durable = page;
      };
      co_await append(4);
      co_await sleep_for(Nanoseconds(1));
      failure.enable(true);
      for (int round = 0; round < 4; ++round) {
        co_await append(1);
        co_await append(5);
        const Locked locked(*home.volume, Locked::For::changing, {file});
        home->catch_up(home.context, *locked[0]);
      }
    });
    failure.watch(platform, [&](pmem::Choices& choices) {
      platform.fail_power(0, choices);
      platform.start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
        NoPages owner;
        OpenVolume home = co_await open_home(thread, kHome, &owner);
        recovered = true;
        EXPECT_EQ(home->audit(), "");
        const Bytes size = home.operations->attributes(file)->size;
        EXPECT_TRUE(size == durable || size == under_way) << size << ", not " << durable;
        EXPECT_EQ(owner.used.size(), 3U);
      });
    });
    platform.run();
    EXPECT_EQ(failure.happened(), recovered);
  };
  for (const sim::Images images : {sim::Images::least, sim::Images::most, sim::Images::random}) {
    const sim::Explored explored =
        perdura::test::explore_until_failure({.images = images, .seed = 1}, scenario);
    EXPECT_TRUE(HasFailure() || explored.tried > 10);
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace perdura::systems::nova::test
