// What an arena promises beside surviving failures: errors, room, and what transactions cost.
#include "systems/mcas/containers/arena.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "platform/base/error.h"
#include "tests/systems/mcas/containers/support.h"

namespace perdura::systems::mcas::containers {
namespace {

using namespace test;

TEST(Arena, IsRefusedWhereThereIsNone) {
  PlainMemory memory(4096);
  const Memory access(memory.region(), Flushing::lines);
  EXPECT_THROW(Arena(access, {0, 4096}), UsageError);
  EXPECT_THROW(Arena(access, {0, 8}), UsageError);
  EXPECT_FALSE(Arena::exists(access, {0, 4096}));
  EXPECT_THROW(Arena::format(access, {32, 2048}), UsageError);
  EXPECT_THROW(Arena::format(access, {0, 1024}), UsageError) << "no room beside the log";
  Arena::format(access, {0, 4096}, {.log = 512});
  EXPECT_TRUE(Arena::exists(access, {0, 4096}));
  EXPECT_FALSE(Arena::exists(access, {0, 2048})) << "a part of one is none";
}

TEST(Arena, ChangesOnlyInTransactionsAndOnlyItself) {
  PlainMemory memory(Containers::kMemory);
  format_in(memory.region());
  Containers all(memory.region());
  EXPECT_THROW(all.numbers.push_back(1), std::logic_error);
  EXPECT_THROW(all.arena.transact([&] { all.arena.transact([] {}); }), std::logic_error);
  EXPECT_THROW(all.arena.transact([&] { all.arena.write(Containers::kRange.length, 1); }),
               std::out_of_range);
  EXPECT_THROW(all.numbers.get(0), std::out_of_range);
  EXPECT_THROW(Vector<int>(all.arena, 120), std::out_of_range);
  EXPECT_EQ(all.contents(), Model{});
  EXPECT_EQ(all.audit(), "");
}

// Offsets are relative, so an arena may be copied to elsewhere, as a store does with a value.
TEST(Arena, IsTheSameWhereverItIsMapped) {
  PlainMemory memory(Containers::kMemory);
  format_in(memory.region());
  Model model;
  {
    Containers all(memory.region());
    EXPECT_TRUE(all.arena.transact([&] {
      for (unsigned i = 0; i < 11; ++i) change(all, model, i, i, i * 7);
    }));
  }
  constexpr ByteRange kElsewhere{640, Containers::kRange.length};
  PlainMemory other(kElsewhere.end());
  other.region().write(kElsewhere.offset, memory.bytes().subspan(Containers::kRange.offset,
                                                                 Containers::kRange.length));
  const Containers moved(other.region(), kElsewhere);
  EXPECT_EQ(moved.contents(), model);
  EXPECT_EQ(moved.audit(), "");
}

// Everything that can be in use is, then everything is free again.
TEST(Arena, GivesAllItsMemoryAndTakesItBack) {
  PlainMemory memory(Containers::kMemory);
  format_in(memory.region());
  Containers all(memory.region());
  const Bytes free = all.arena.free_bytes();
  std::uint64_t count = 0;
  while (all.arena.transact([&] { all.lines.push_back("a line"); })) ++count;
  EXPECT_EQ(count, free / 64) << "a node takes a unit, and so do its bytes";
  EXPECT_LT(all.arena.free_bytes(), 64U);
  EXPECT_EQ(all.lines.size(), count);
  EXPECT_EQ(all.audit(), "");
  while (all.lines.size() > 0) {
    EXPECT_TRUE(all.arena.transact([&] { all.lines.erase(all.lines.begin()); }));
  }
  EXPECT_EQ(all.arena.free_bytes(), free);
  EXPECT_EQ(all.audit(), "");
}

// The heap or the log is full in the middle of several changes: none of them has happened.
TEST(Arena, OutOfSpaceUndoesTheWholeTransaction) {
  PlainMemory memory(Containers::kMemory);
  format_in(memory.region());
  Containers all(memory.region());
  Model model;
  EXPECT_TRUE(all.arena.transact([&] {
    for (unsigned i = 0; i < 11; ++i) change(all, model, i, i, i * 7);
  }));
  const auto changes = [&](std::uint64_t number, Bytes length) {
    all.numbers.push_back(number);
    all.names.put("key 1", "another");
    all.names.put("long", std::string(length, 'x'));
    all.lines.push_front("another");
  };
  const Bytes free = all.arena.free_bytes();
  EXPECT_FALSE(all.arena.transact([&] { changes(1, free); })) << "the heap is full";
  EXPECT_EQ(all.contents(), model);
  EXPECT_FALSE(all.arena.transact([&] {
    for (std::uint64_t i = 0; i < 1000; ++i) all.squares.put(i % 20, i);
    for (std::uint64_t i = 0; i < 1000; ++i) changes(i, i % 64);
  })) << "the log is full";
  EXPECT_EQ(all.contents(), model);
  EXPECT_THROW(all.arena.transact([&] {
    changes(1, 1);
    throw std::runtime_error("the plugin's own");
  }),
               std::runtime_error);
  EXPECT_EQ(all.contents(), model);
  EXPECT_EQ(all.arena.free_bytes(), free);
  EXPECT_EQ(all.audit(), "");
  EXPECT_TRUE(all.arena.transact([&] { changes(1, 1); }));
  EXPECT_EQ(all.names.get("key 1"), "another");
}

// A range that is saved in parts, and then again within a larger one: the first copies count.
TEST(Arena, TheFirstCopyOfARangeIsTheOneThatIsWrittenBack) {
  PlainMemory memory(Containers::kMemory);
  format_in(memory.region());
  Arena arena(Memory(memory.region(), Flushing::lines), Containers::kRange);
  using Words = std::array<std::uint64_t, 4>;
  const Bytes root = arena.root(0, sizeof(Words));
  EXPECT_TRUE(arena.transact([&] { arena.write(root, Words{1, 2, 3, 4}); }));
  EXPECT_THROW(arena.transact([&] {
    arena.write(root + 8, std::uint64_t{20});
    arena.write(root, Words{10, 20, 30, 40});
    throw std::runtime_error("taken back");
  }),
               std::runtime_error);
  EXPECT_EQ(arena.read<Words>(root), (Words{1, 2, 3, 4}));
}

// docs/systems/mcas.md has this table.
TEST(Arena, FlushesAndFencesOfTransactions) {
  constexpr ByteRange kRoom{0, 64 * KiB};
  PlainMemory memory(kRoom.end());
  format_in(memory.region(), kRoom, {.log = 4 * KiB, .roots = 128});
  Containers all(memory.region(), kRoom);
  using Pair = std::pair<std::uint64_t, std::uint64_t>;
  const auto cost = [&](const std::function<void()>& changes) {
    const pmem::Writes before = pmem::thread_write_meter().writes();
    EXPECT_TRUE(all.arena.transact(changes));
    pmem::Writes after = pmem::thread_write_meter().writes();
    after -= before;
    const pmem::WriteCounts counts = after.total();
    return Pair(counts.flushes, counts.fences);
  };
  const auto line = [&](Bytes length) {
    return cost([&] { all.lines.push_back(std::string(length, 'x')); });
  };
  EXPECT_EQ(cost([] {}), Pair(0, 0));
  EXPECT_EQ(cost([&] { all.numbers.push_back(1); }), Pair(7, 4));
  EXPECT_EQ(cost([&] { all.numbers.set(0, 2); }), Pair(3, 3));
  EXPECT_EQ(cost([&] { all.numbers.push_back(2); }), Pair(6, 4));
  EXPECT_EQ(cost([&] { all.numbers.pop_back(); }), Pair(3, 3));
  EXPECT_EQ(cost([&] {
              for (std::uint64_t i = 0; i < 2; ++i) all.numbers.push_back(i);
            }),
            Pair(7, 5));
  EXPECT_EQ(line(8), Pair(8, 4));
  EXPECT_EQ(line(8), Pair(8, 5));
  EXPECT_EQ(line(4096), Pair(73, 7));
  EXPECT_EQ(cost([&] { all.squares.put(1, 1); }), Pair(9, 5));
  EXPECT_EQ(cost([&] { all.squares.put(1, 2); }), Pair(3, 3));
  EXPECT_EQ(cost([&] { all.squares.erase(1); }), Pair(7, 5));
}

// What is left of an arena in the memory of a new one, entries of its log above all, is not taken
// for the new one's: both begin with the same transactions.
TEST(Arena, AFormattedArenaIsEmptyWhateverWasThere) {
  PlainMemory memory(Containers::kMemory);
  format_in(memory.region());
  {
    Containers all(memory.region());
    Model model;
    EXPECT_TRUE(all.arena.transact([&] {
      for (unsigned i = 0; i < 11; ++i) change(all, model, i, i, i * 7);
    }));
  }
  format_in(memory.region());
  Containers all(memory.region());
  EXPECT_FALSE(all.arena.undone());
  EXPECT_EQ(all.contents(), Model{});
  EXPECT_EQ(all.audit(), "");
}

}  // namespace
}  // namespace perdura::systems::mcas::containers
