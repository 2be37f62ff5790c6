// Stores of programs that know nothing of regions, found by the protection of pages.
#include "platform/pmem/tracked_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "platform/base/error.h"
#include "tests/support/seed.h"

namespace perdura::pmem {
namespace {

constexpr Bytes kPages = 64;
constexpr Bytes kSize = kPages * kTrackedPage;

Region make_region(Bytes size = kSize, Medium medium = Medium::pm) {
  void* const memory =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return Region("tracked", medium, static_cast<std::byte*>(memory), size, nullptr,
                std::shared_ptr<void>(memory, [size](void* base) { ::munmap(base, size); }));
}

std::uint64_t& word(const TrackedMemory& memory, Bytes offset) {
  return *reinterpret_cast<std::uint64_t*>(memory.memory().data() + offset);
}

TEST(TrackedMemory, ASyncTellsOfTheStoresSinceTheLastOneAndOfNoOthers) {
  const std::uint32_t seed = test::random_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  Region region = make_region();
  TrackedMemory tracked(region, 0, kSize);
  std::vector<std::uint64_t> contents(kSize / kWord);
  for (int round = 0; round < 50; ++round) {
    std::map<Bytes, std::uint64_t> lines;  // that changed, by page that was stored to
    const std::vector<std::uint64_t> before = contents;
    for (std::uint64_t n = random() % 40; n > 0; --n) {
      const Bytes at = random() % (kSize / kWord);
      // Every fourth store changes nothing.
      if (random() % 4 != 0) contents[at] = random();
      word(tracked, at * kWord) = contents[at];
      lines[at * kWord / kTrackedPage * kTrackedPage];
    }
    for (Bytes at = 0; at < contents.size(); ++at) {
      ASSERT_EQ(word(tracked, at * kWord), contents[at]) << "a load";
      if (contents[at] == before[at]) continue;
      const Bytes page = at * kWord / kTrackedPage * kTrackedPage;
      lines[page] |= std::uint64_t{1} << (at * kWord - page) / kCacheLine;
    }
    // In two parts, and all of it again.
    const Bytes part = random() % (kPages + 1) * kTrackedPage;
    std::vector<DirtyPage> found = tracked.sync(0, part);
    for (const DirtyPage& page : found) EXPECT_LT(page.offset, part);
    for (const DirtyPage& page : tracked.sync(part, kSize - part)) found.push_back(page);
    std::vector<DirtyPage> expected;
    for (const auto& [offset, changed] : lines) expected.push_back({offset, changed});
    ASSERT_EQ(found, expected) << "round " << round;
    ASSERT_EQ(tracked.sync(0, kSize), std::vector<DirtyPage>());
  }
}

TEST(TrackedMemory, ARangeIsWidenedToWholePages) {
  Region region = make_region();
  TrackedMemory tracked(region, kTrackedPage, 4 * kTrackedPage);
  for (Bytes page = 0; page < 4; ++page) word(tracked, page * kTrackedPage) = 1;
  EXPECT_EQ(tracked.sync(kTrackedPage - 1, 2).size(), 2U);
  EXPECT_EQ(tracked.sync(3 * kTrackedPage + 5, 0).size(), 0U);
  EXPECT_EQ(tracked.sync(0, 4 * kTrackedPage),
            (std::vector<DirtyPage>{{2 * kTrackedPage, 1}, {3 * kTrackedPage, 1}}));
  EXPECT_THROW(tracked.sync(1, 4 * kTrackedPage), UsageError);
  EXPECT_EQ(region.load(kTrackedPage), 1U) << "offsets count from the start of what is tracked";
}

TEST(TrackedMemory, WhatChangedIsCountedAndFlushed) {
  Region region = make_region();
  TrackedMemory tracked(region, 0, kSize);
  std::thread([&] {
    // On a thread of its own, whose meter counts nothing else.
    word(tracked, 0) = 0xFF;
    word(tracked, 8) = 0xFF;
    word(tracked, 16) = 0;  // as before
    word(tracked, 128) = 1;
    word(tracked, 5 * kTrackedPage) = 0;
    EXPECT_EQ(thread_write_meter().writes(), Writes());
    EXPECT_EQ(tracked.sync(0, kSize), (std::vector<DirtyPage>{{0, 0b101}, {5 * kTrackedPage, 0}}));
    const WriteCounts counts = thread_write_meter().writes().local_store;
    EXPECT_EQ(counts.stores, 2U) << "of adjacent words one";
    EXPECT_EQ(counts.bytes_issued, 24U);
    EXPECT_EQ(counts.bytes_programmed, 3U);
    EXPECT_EQ(counts.bits_flipped, 17U);
    EXPECT_EQ(counts.flushes, 2U);
    EXPECT_EQ(counts.fences, 1U);
    EXPECT_EQ(counts.lines, 2U);
    tracked.sync(0, kSize);
    EXPECT_EQ(thread_write_meter().writes().local_store, counts) << "nothing was stored since";
  }).join();
}

// Whoever takes the pages of each sync, as they are after it, has everything at the end.
TEST(TrackedMemory, ConcurrentWritersLoseNothing) {
  const std::uint32_t seed = test::random_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  constexpr int kWriters = 3;
  Region region = make_region();
  TrackedMemory tracked(region, 0, kSize);
  std::vector<std::byte> mirror(kSize);
  std::size_t pages = 0;
  const auto sync = [&](Bytes offset, Bytes length) {
    for (const DirtyPage& page : tracked.sync(offset, length)) {
      ++pages;
      for (Bytes at = page.offset; at < page.offset + kTrackedPage; at += kWord) {
        const std::uint64_t value = std::atomic_ref(word(tracked, at)).load();
        std::memcpy(mirror.data() + at, &value, kWord);
      }
    }
  };
  std::atomic<bool> enough = false;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      // Of few pages, so that writers meet in them, each in words of its own.
      std::mt19937_64 random(seed + static_cast<std::uint32_t>(writer));
      while (!enough) {
        const Bytes page = random() % 8 * kTrackedPage;
        const Bytes at = page + (random() % 100 * kWriters + static_cast<Bytes>(writer)) * kWord;
        std::atomic_ref(word(tracked, at)).store(random(), std::memory_order_relaxed);
      }
    });
  }
  std::mt19937_64 random(seed + kWriters);
  // Between most of them somebody has stored to what was synced before.
  while (pages < 300) {
    const Bytes first = random() % kSize;
    sync(first, random() % (kSize - first));
  }
  enough = true;
  for (std::thread& writer : writers) writer.join();
  sync(0, kSize);
  EXPECT_EQ(std::memcmp(mirror.data(), tracked.memory().data(), kSize), 0);
}

TEST(TrackedMemory, SeveralRangesAreTrackedAtOnce) {
  Region first = make_region();
  Region second = make_region();
  TrackedMemory a(first, 0, 4 * kTrackedPage);
  TrackedMemory b(first, 4 * kTrackedPage, 4 * kTrackedPage);
  {
    TrackedMemory c(second, 0, kSize);
    word(c, 3 * kTrackedPage) = 1;
    word(b, 0) = 2;
    EXPECT_EQ(c.sync(0, kSize), (std::vector<DirtyPage>{{3 * kTrackedPage, 1}}));
    word(c, 0) = 1;
  }
  EXPECT_EQ(a.sync(0, 4 * kTrackedPage), (std::vector<DirtyPage>{}));
  EXPECT_EQ(b.sync(0, 4 * kTrackedPage), (std::vector<DirtyPage>{{0, 1}}));
  second.store(0, 7);  // nobody's pages any more
  EXPECT_EQ(second.load(0), 7U);
}

TEST(TrackedMemory, RangesThatAreNotWholePagesAreRefused) {
  Region region = make_region();
  EXPECT_THROW(TrackedMemory(region, 1, kTrackedPage), UsageError);
  EXPECT_THROW(TrackedMemory(region, 0, kTrackedPage + 1), UsageError);
  EXPECT_THROW(TrackedMemory(region, 0, 0), UsageError);
  EXPECT_THROW(TrackedMemory(region, kTrackedPage, kSize), UsageError);
}

// --- faults that are not its own -------------------------------------------------------------

class ForeignFault : public testing::Test {
 protected:
  // In a process of its own, in which no handler was set before.
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// The memory of another program's error.
volatile std::uint64_t* closed_page() {
  return static_cast<volatile std::uint64_t*>(
      ::mmap(nullptr, kTrackedPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

// AddressSanitizer has a handler of its own, which reports and exits.
bool died_of_a_fault(int status) {
#ifdef __SANITIZE_ADDRESS__
  return WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) != 0);
#else
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
#endif
}

TEST_F(ForeignFault, KillsTheProcessAsBefore) {
  const auto with_tracking = [](auto crash) {
    Region region = make_region();
    TrackedMemory tracked(region, 0, kSize);
    word(tracked, 0) = 1;
    crash(tracked);
    std::_Exit(0);
  };
  EXPECT_EXIT(with_tracking([](TrackedMemory&) { *closed_page() = 1; }), died_of_a_fault, "");
  EXPECT_EXIT(with_tracking([](TrackedMemory&) { ::raise(SIGSEGV); }), died_of_a_fault, "");
  EXPECT_EXIT(with_tracking([](TrackedMemory& tracked) {
                reinterpret_cast<void (*)()>(tracked.memory().data())();
              }),
              died_of_a_fault, "");
}

void exit_with_42(int) { std::_Exit(42); }
void exit_with_43(int, siginfo_t* info, void*) {
  std::_Exit(info->si_code == SEGV_ACCERR ? 43 : 44);
}

TEST_F(ForeignFault, ReachesTheHandlerThatWasSetBefore) {
  const auto with_handler = [](auto set) {
    struct sigaction before {};
    set(before);
    ::sigaction(SIGSEGV, &before, nullptr);
    Region region = make_region();
    TrackedMemory tracked(region, 0, kSize);
    word(tracked, 0) = 1;
    *closed_page() = 1;
    std::_Exit(0);
  };
  EXPECT_EXIT(with_handler([](struct sigaction& before) { before.sa_handler = exit_with_42; }),
              testing::ExitedWithCode(42), "");
  EXPECT_EXIT(with_handler([](struct sigaction& before) {
                before.sa_sigaction = exit_with_43;
                before.sa_flags = SA_SIGINFO;
              }),
              testing::ExitedWithCode(43), "");
}

}  // namespace
}  // namespace perdura::pmem
