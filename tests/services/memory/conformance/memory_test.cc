// What every system of replicated memory must do: copies have what was synced, all of a sync point
// or none of it, and nothing else.
#include <algorithm>
#include <random>

#include "platform/pmem/view.h"
#include "tests/services/memory/conformance/support.h"

namespace perdura::services::test {
namespace {

INSTANTIATE_TEST_SUITE_P(All, MemoryTest, testing::ValuesIn(all_subjects()), subject_name);

using Words = pmem::View<std::uint64_t>;

std::vector<std::byte> contents_of(MemoryReplica& replica, Bytes size) {
  std::vector<std::byte> contents(size);
  replica.read(0, contents);
  return contents;
}

// Ranges of any alignment, from a byte to several requests, one or several in a sync point.
TEST_P(MemoryTest, CopiesHaveWhatWasSyncedAndNothingElse) {
  const unsigned seed = 20260901;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::vector<std::byte> synced(config_.size);
  apply([&](MappedMemory& memory, Thread&) -> Task<> {
    std::mt19937_64 random(seed);
    constexpr std::array<Bytes, 7> kLengths{1, 8, 63, 64, 200, 4096, 9000};
    for (int i = 0; i < 300; ++i) {
      std::vector<MemoryRange> ranges(1 + random() % 3);
      for (MemoryRange& range : ranges) {
        range.length = kLengths[random() % kLengths.size()];
        range.offset = random() % (config_.size - range.length);
        std::vector<std::byte> data(range.length);
        for (std::byte& byte : data) byte = static_cast<std::byte>(random());
        memory.region().write(range.offset, data);
      }
      const auto done = co_await memory.sync(ranges);
      EXPECT_TRUE(done.has_value());
      for (const MemoryRange& range : ranges) {
        memory.region().read(range.offset, std::span(synced).subspan(range.offset, range.length));
      }
      // Of this no copy hears, unless a later sync point covers it.
      std::vector<std::byte> unsynced(8, std::byte{0xFF});
      const Bytes offset = random() % (config_.size - 8);
      std::vector<std::byte> before(8);
      memory.region().read(offset, before);
      memory.region().write(offset, unsynced);
      memory.region().write(offset, before);
    }
    const pmem::View<std::uint64_t> words(memory.region());
    words[17] = 4711;
  });
  run([&](MemoryReplica& copy) {
    const std::vector<std::byte> contents = contents_of(copy, config_.size);
    const auto [found, expected] =
        std::mismatch(contents.begin(), contents.end(), synced.begin(), synced.end());
    EXPECT_TRUE(found == contents.end())
        << "the " << to_string(copy.role()) << "'s byte " << found - contents.begin() << " is "
        << std::to_integer<int>(*found) << " instead of " << std::to_integer<int>(*expected);
  });
}

// Section 3.1.1: "at each sync point, Mojim atomically replicates all memory regions specified".
TEST_P(MemoryTest, ReadersOfACopySeeSyncPointsWhole) {
  if (!is_replicated()) GTEST_SKIP() << "it has no copies";
  constexpr std::uint64_t kSyncs = 2000;
  constexpr std::array<std::size_t, 3> kPlaces{0, 1000, 30000};
  bool ended = false;
  std::uint64_t reads = 0;
  apply([&](MappedMemory& memory, Thread&) -> Task<> {
    const Words words(memory.region());
    for (std::uint64_t i = 1; i <= kSyncs; ++i) {
      std::vector<MemoryRange> ranges;
      for (const std::size_t place : kPlaces) {
        words[place] = i;
        ranges.push_back({words.offset_of(place), 8});
      }
      const auto done = co_await memory.sync(ranges);
      EXPECT_TRUE(done.has_value());
    }
    co_await memory.settle();
    std::atomic_ref(ended).store(true);
  });
  read_copies([&](MemoryReplica& copy, Thread&) -> Task<> {
    std::uint64_t last = 0;
    while (!std::atomic_ref(ended).load()) {
      const std::vector<std::byte> contents = contents_of(copy, config_.size);
      std::array<std::uint64_t, kPlaces.size()> found{};
      for (std::size_t i = 0; i < kPlaces.size(); ++i) {
        std::memcpy(&found[i], contents.data() + kPlaces[i] * 8, 8);
      }
      EXPECT_TRUE(found[0] == found[1] && found[1] == found[2])
          << found[0] << ", " << found[1] << ", " << found[2];
      EXPECT_GE(found[0], last);
      last = found[0];
      ++std::atomic_ref(reads);
      co_await sleep_for(Microseconds(5));
    }
  });
  run([&](MemoryReplica& copy) {
    std::uint64_t word = 0;
    copy.read(0, std::as_writable_bytes(std::span(&word, 1)));
    EXPECT_EQ(word, kSyncs);
  });
  EXPECT_GT(reads, 0U);
}

// Several threads, which share connections where there are fewer.
TEST_P(MemoryTest, ThreadsSyncAtTheSameTime) {
  constexpr std::uint64_t kSyncs = 300;
  constexpr std::uint64_t kThreads = 3;
  if (is_replicated()) config_.parameters["connections"] = 2;
  for (std::uint64_t number = 0; number < kThreads; ++number) {
    apply([number](MappedMemory& memory, Thread&) -> Task<> {
      const Words words(memory.region());
      for (std::uint64_t i = 1; i <= kSyncs; ++i) {
        words[number] = i;
        words[1000 + number] = i;
        const std::array ranges{MemoryRange{words.offset_of(number), 8},
                                MemoryRange{words.offset_of(1000 + number), 8}};
        const auto done = co_await memory.sync(ranges);
        EXPECT_TRUE(done.has_value());
      }
    });
  }
  run([&](MemoryReplica& copy) {
    for (std::uint64_t number = 0; number < kThreads; ++number) {
      for (const Bytes word : {number, 1000 + number}) {
        std::uint64_t found = 0;
        copy.read(word * 8, std::as_writable_bytes(std::span(&found, 1)));
        EXPECT_EQ(found, kSyncs) << "word " << word << " of the " << to_string(copy.role());
      }
    }
  });
}

// A log that is small goes around many times, and the primary waits for it.
TEST_P(MemoryTest, ASmallLogGoesAround) {
  if (!is_replicated()) GTEST_SKIP() << "it has no logs";
  config_.parameters["log_slots"] = 4;
  config_.parameters["slot_bytes"] = 64;
  config_.parameters["checkpoint_thresh"] = 1000;
  constexpr std::uint64_t kSyncs = 500;
  apply([](MappedMemory& memory, Thread&) -> Task<> {
    const Words words(memory.region());
    for (std::uint64_t i = 1; i <= kSyncs; ++i) {
      for (std::size_t word = 3; word < 23; ++word) words[word] = i;
      const auto done = co_await memory.sync({words.offset_of(3), 20 * 8});
      EXPECT_TRUE(done.has_value());
    }
  });
  run([&](MemoryReplica& copy) {
    std::uint64_t found = 0;
    copy.read(std::size_t{22} * 8, std::as_writable_bytes(std::span(&found, 1)));
    EXPECT_EQ(found, kSyncs);
    for (std::size_t event = 0; event < system().events.size(); ++event) {
      EXPECT_GT(copy.events().at(event), kSyncs / 8) << system().events[event].name;
    }
  });
}

TEST_P(MemoryTest, RefusesRangesThatItCannotSync) {
  if (is_replicated()) {
    config_.parameters["log_slots"] = 4;
    config_.parameters["slot_bytes"] = 64;
  }
  apply([this](MappedMemory& memory, Thread&) -> Task<> {
    const auto outside = co_await memory.sync({config_.size - 7, 8});
    EXPECT_EQ(outside, tl::unexpected(SyncError::outside));
    const auto far = co_await memory.sync({~Bytes{0}, 8});
    EXPECT_EQ(far, tl::unexpected(SyncError::outside));
    const auto nothing = co_await memory.sync({config_.size, 0});
    EXPECT_TRUE(nothing.has_value());
    const auto large = co_await memory.sync({0, 4 * 64 + 1});
    EXPECT_EQ(large.has_value(), !is_replicated());
    const auto fitting = co_await memory.sync({0, 4 * 64});
    EXPECT_TRUE(fitting.has_value());
  });
  run();
}

}  // namespace
}  // namespace perdura::services::test
