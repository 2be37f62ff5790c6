// Sessions of several threads, in the same directories and files.
#include <sched.h>

#include <atomic>
#include <random>

#include "systems/nova/session.h"
#include "tests/support/seed.h"
#include "tests/systems/nova/support.h"

namespace perdura::systems::nova::test {
namespace {

using fs::InodeNumber;
using fs::kRootInode;

constexpr std::uint32_t kThreads = 3;

class NovaThreads : public testing::TestWithParam<std::string> {};

// Names come, go and move between directories that contain each other; what remains is whole, and
// every number that a thread has added to the shared file is in it.
TEST_P(NovaThreads, ChangeTheSameTree) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  // So few inodes in DRAM that they come and go all the time.
  const fs::FsConfig config{.size = 4 * MiB,
                            .threads = kThreads + 1,
                            .parameters = {{"cached_inodes", std::uint64_t{4}}}};
  const auto platform = perdura::test::make_platform(GetParam(), 1);
  const auto ready = platform->create_barrier(kThreads);
  const auto done = platform->create_barrier(kThreads);
  std::shared_ptr<fs::FileSystem> files;
  InodeNumber shared{};
  std::uint64_t appended = 0;
  for (std::uint32_t number = 0; number < kThreads; ++number) {
    platform->start(
        0, static_cast<fabric::Port>(number), CompletionMode::polling,
        [&, number](Thread& thread) -> Task<> {
          if (number == 0) {
            co_await kNova.make(thread, "home", config);
            files = co_await kNova.mount(thread, "home", config);
            const auto first = files->attach(thread);
            const auto made = co_await first->create(kRootInode, "shared", {.mode = S_IFREG}, {});
            shared = made->inode;
          }
          co_await ready->arrive_and_wait();
          const auto session = files->attach(thread);
          std::mt19937_64 random(seed + number);
          std::vector<InodeNumber> directories{kRootInode};
          std::uint64_t mine = 0;
          for (int i = 0; i < 3000; ++i) {
            const std::string name(1, static_cast<char>('a' + random() % 5));
            const std::string other(1, static_cast<char>('a' + random() % 5));
            const InodeNumber in = directories[random() % directories.size()];
            const InodeNumber to = directories[random() % directories.size()];
            switch (random() % 10) {
              case 0: {
                const auto made = co_await session->create(in, name, {.mode = S_IFDIR | 0755}, {});
                if (made && directories.size() < 20) directories.push_back(made->inode);
                break;
              }
              case 1:
                co_await session->create(in, name, {.mode = S_IFREG | 0644}, {});
                break;
              case 2:
                co_await session->unlink(in, name, {});
                break;
              case 3:
                co_await session->remove_directory(in, name, {});
                break;
              case 4:
              case 5:
                co_await session->rename(
                    in, name, to, other,
                    random() % 3 == 0 ? fs::RenameMode::exchange : fs::RenameMode::replace, {});
                break;
              case 6: {
                const auto word = static_cast<std::uint64_t>(number) << 32 | mine;
                const auto at =
                    co_await session->append(shared, std::as_bytes(std::span(&word, 1)), {});
                if (at) ++mine;
                break;
              }
              case 7: {
                std::array<std::byte, 64> into;
                co_await session->read(shared, random() % 1000, into);
                break;
              }
              case 8: {
                const auto entries = co_await session->entries(in, 0, 100);
                if (entries && !entries->empty()) {
                  co_await session->attributes(entries->front().inode);
                }
                break;
              }
              default: {
                const auto found = co_await session->look_up(in, name);
                if (found && found->is_regular()) {
                  const std::vector<std::byte> data = bytes(random() % 10000);
                  co_await session->write(found->inode, random() % 5000, data, {});
                }
              }
            }
            co_await yield();
          }
          std::atomic_ref(appended) += mine;
          co_await done->arrive_and_wait();
          if (number != 0) co_return;
          EXPECT_EQ(co_await files->audit(), "");
          std::vector<std::uint64_t> words(appended + 1);
          const auto length =
              co_await session->read(shared, 0, std::as_writable_bytes(std::span(words)));
          EXPECT_EQ(*length, appended * 8);
          // Of each thread they are in its order.
          std::array<std::uint64_t, kThreads> next{};
          for (std::uint64_t i = 0; i < appended; ++i) {
            const std::uint64_t from = words[i] >> 32;
            EXPECT_LT(from, kThreads);
            if (from >= kThreads) break;
            EXPECT_EQ(words[i] & 0xFFFFFFFF, next[from]++);
          }
        });
  }
  platform->run();
}

// While one reads, others read the same, and its attributes, its names and its directory's entries.
// (If they waited, this would take for ever.)
TEST(NovaInodes, AreReadByAnyNumberOfThreadsAtOnce) {
  const auto platform = perdura::test::make_platform("shm", 1);
  const auto ready = platform->create_barrier(2);
  const auto done = platform->create_barrier(2);
  const fs::FsConfig config{.size = 4 * MiB, .threads = 2, .parameters = {}};
  std::shared_ptr<fs::FileSystem> files;
  InodeNumber inode{};
  platform->start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await kNova.make(thread, "home", config);
    files = co_await kNova.mount(thread, "home", config);
    {
      const auto session = files->attach(thread);
      const auto made = co_await session->create(kRootInode, "a", {.mode = S_IFREG}, {});
      inode = made->inode;
      co_await session->write(inode, 0, bytes(10000), {});
    }
    const Locked locked(static_cast<FileSystem&>(*files).volume(), Locked::For::reading,
                        {1, static_cast<std::uint64_t>(inode)});
    co_await ready->arrive_and_wait();
    co_await done->arrive_and_wait();
  });
  platform->start(0, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await ready->arrive_and_wait();
    const auto session = files->attach(thread);
    std::vector<std::byte> into(10000);
    const auto read = co_await session->read(inode, 0, into);
    EXPECT_EQ(*read, 10000U);
    const auto attributes = co_await session->attributes(inode);
    EXPECT_EQ(attributes->size, 10000U);
    const auto found = co_await session->look_up(kRootInode, "a");
    EXPECT_EQ(found->inode, inode);
    const auto entries = co_await session->entries(kRootInode, 0, 10);
    EXPECT_EQ(entries->size(), 1U);
    co_await done->arrive_and_wait();
  });
  platform->run();
}

// Makes a file while all inodes that are free are locked by others, but the one of this number
// among them; and another one while this is locked, too.
void make_files_besides(std::uint64_t open) {
  constexpr std::uint64_t kFree = 5;
  const auto platform = perdura::test::make_platform("shm", 1);
  const auto locked = platform->create_barrier(2);
  const fs::FsConfig config{.size = 1 * MiB, .threads = 2, .parameters = {}};
  std::shared_ptr<fs::FileSystem> files;
  std::atomic<bool> made_second{false};
  platform->start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await kNova.make(thread, "home", config);
    files = co_await kNova.mount(thread, "home", config);
    const auto session = files->attach(thread);
    std::uint64_t last = 0;
    for (auto left = co_await session->statistics(); left->free_inodes > kFree;
         left = co_await session->statistics()) {
      const auto made = co_await session->create_unnamed({.mode = S_IFREG}, {});
      last = static_cast<std::uint64_t>(made->inode);
    }
    auto& volume = static_cast<FileSystem&>(*files).volume();
    std::vector<std::unique_ptr<Locked>> busy;
    const auto lock = [&](std::uint64_t number) {
      busy.push_back(std::make_unique<Locked>(volume, Locked::For::reading,
                                              std::initializer_list{last + number}));
    };
    for (std::uint64_t i = 1; i <= kFree; ++i) {
      if (i != open) lock(i);
    }
    co_await locked->arrive_and_wait();
    co_await locked->arrive_and_wait();
    lock(open);
    co_await locked->arrive_and_wait();
    // The other one waits as long as these are locked, and not with the root locked.
    for (int looks = 0; looks < 10000 && !made_second; ++looks) sched_yield();
    EXPECT_FALSE(made_second);
    const Locked root(volume, Locked::For::changing, {1});
    busy.clear();
  });
  platform->start(0, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await locked->arrive_and_wait();
    const auto session = files->attach(thread);
    const auto first = co_await session->create(kRootInode, "a", {.mode = S_IFREG}, {});
    EXPECT_TRUE(first.has_value());
    co_await session->unlink(kRootInode, "a", {});
    co_await locked->arrive_and_wait();
    co_await locked->arrive_and_wait();
    const auto second = co_await session->create(kRootInode, "b", {.mode = S_IFREG}, {});
    made_second = true;
    EXPECT_TRUE(second.has_value());
  });
  platform->run();
}

// Whoever looked for a file that is gone may still have its inode locked, and may wait for one of
// ours. Who makes a file takes another inode; if there is none, it waits without locks. (If it
// waited for one of several, or with locks, this would take for ever.)
TEST(NovaInodes, ThatAreFreeMayBeLockedByOthers) {
  for (std::uint64_t open = 1; open <= 5; ++open) {
    SCOPED_TRACE(open);
    make_files_besides(open);
  }
}

// What is held stays in DRAM, of the rest a few; what was taken out is found again.
TEST(NovaInodes, LeaveDramWhenTheyAreNotInUse) {
  for (const std::string& name : perdura::test::platform_names()) {
    SCOPED_TRACE(name);
    const fs::FsConfig config{.size = 8 * MiB,
                              .parameters = {{"cached_inodes", std::uint64_t{20}}}};
    run(name, config, [&](Thread& thread) -> Task<> {
      const auto files = co_await kNova.mount(thread, "home", config);
      const auto session = files->attach(thread);
      const Volume& volume = static_cast<FileSystem&>(*files).volume();
      std::vector<InodeNumber> made;
      for (int i = 0; i < 500; ++i) {
        const auto file = co_await session->create(kRootInode, std::to_string(i), {.mode = S_IFREG},
                                                   {.seconds = i});
        made.push_back(file->inode);
        co_await session->write(made[i], 0, bytes(5, i % 100), {{.seconds = i}});
        if (i < 50) co_await session->hold(made[i]);
        if (i < 10) co_await session->unlink(kRootInode, std::to_string(i), {});
        EXPECT_LE(volume.cached_inodes(), 50U + 30U);
      }
      for (int round = 0; round < 2; ++round) {
        for (int i = 0; i < 500; ++i) {
          const auto found = co_await session->attributes(made[i]);
          EXPECT_TRUE(found.has_value()) << i;
          std::vector<std::byte> into(5);
          co_await session->read(made[i], 0, into);
          EXPECT_EQ(into, bytes(5, i % 100)) << i;
        }
      }
      EXPECT_LE(volume.cached_inodes(), 50U + 30U);
      EXPECT_EQ(co_await files->audit(), "");
      for (int i = 0; i < 50; ++i) co_await session->release(made[i]);
      for (int i = 0; i < 500; ++i) co_await session->attributes(made[i]);
      EXPECT_LE(volume.cached_inodes(), 30U);
      EXPECT_EQ(co_await files->audit(), "");
    });
  }
}

// Direct access needs the blocks where they are, whatever else is used.
TEST(NovaInodes, StayInDramAsLongAsTheyAreMapped) {
  const fs::FsConfig config{.size = 4 * MiB, .parameters = {{"cached_inodes", std::uint64_t{1}}}};
  run("shm", config, [&](Thread& thread) -> Task<> {
    const auto files = co_await kNova.mount(thread, "home", config);
    const auto session = files->attach(thread);
    const auto made = co_await session->create(kRootInode, "a", {.mode = S_IFREG}, {});
    const auto mapping = co_await session->map(made->inode, 0, fs::kBlock);
    for (int i = 0; i < 30; ++i) {
      co_await session->create(kRootInode, std::to_string(i), {.mode = S_IFREG}, {});
    }
    co_await session->write(made->inode, 0, bytes(8, 7), {});
    EXPECT_EQ((*mapping)->region().load((*mapping)->extents()[0].in_region), 0x0707070707070707U);
  });
}

// "No word ever has an earlier value again" (commit.cc): else what a journal has of an operation
// long ago would be done once more. Here a log's tail comes back to each place that it had when a
// journal said that it changes, and the inode leaves DRAM again and again.
TEST(NovaInodes, GoOnWithTheVersionsOfTheirLogs) {
  const fs::FsConfig config{.size = 256 * KiB,
                            .parameters = {{"cached_inodes", std::uint64_t{1}},
                                           {"inodes", std::uint64_t{16}},
                                           {"log_page_bytes", std::uint64_t{kSmallestLogPage}},
                                           {"gc_pages", std::uint64_t{1000}}}};
  for (int before = 0; before < 7 && !testing::Test::HasFailure(); ++before) {
    for (int behind = 0; behind < 30 && !testing::Test::HasFailure(); ++behind) {
      SCOPED_TRACE(testing::Message() << before << " changes before, " << behind << " behind");
      run("shm", config, [&](Thread& thread) -> Task<> {
        {
          const auto files = co_await kNova.mount(thread, "home", config);
          const auto session = files->attach(thread);
          const auto made = co_await session->create(kRootInode, "a", {.mode = S_IFREG}, {});
          const InodeNumber inode = made->inode;
          const fs::AttributeChange change{.permissions = 0600};
          for (int i = 0; i < before; ++i) co_await session->change(inode, change);
          co_await session->link(inode, kRootInode, "b", {});
          for (int i = 0; i < behind; ++i) {
            co_await session->change(inode, change);
            for (int other = 0; other < 4; ++other) co_await session->attributes(kRootInode);
          }
        }
        const auto files = co_await kNova.mount(thread, "home", config);
        EXPECT_EQ(files->events()[static_cast<std::size_t>(Happened::redone)], 0U);
        EXPECT_EQ(co_await files->audit(), "");
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, NovaThreads, testing::ValuesIn(perdura::test::platform_names()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace perdura::systems::nova::test
