#include "services/memory/crash_plan.h"

#include <fmt/format.h>

#include "services/boundaries.h"

namespace perdura::services {

namespace {

// Systems keep state for each page of a region.
constexpr Bytes kPage = 4 * KiB;

// Gives cells any number of bytes, at any offset within a word. The large cell takes no more
// requests than one of whole words does.
void draw_lengths(pmem::Choices& lengths, MemoryLayout& layout) {
  constexpr Bytes kLongest = 375;
  if (lengths.choose(2) == 0) return;
  layout.large_length = std::min(length_around_a_boundary(lengths), kLongest);
  layout.small_length = kWord + lengths.choose(kWord);
  layout.shift = lengths.choose(kWord);
}

// Puts the large cell of each thread some words before the end of a page, so that it extends into
// the next one.
void put_over_pages(pmem::Choices& world, MemoryLayout& layout) {
  constexpr Bytes kMostWords = 44;
  const Bytes words = std::max<Bytes>(layout.large_length / kWord, 2) - 1;
  const Bytes before = (1 + world.choose(kMostWords) % words) * kWord;
  layout.region = 3 * kPage;
  layout.large = {kPage - before, 2 * kPage - before};
}

}  // namespace

bool goes_into_a_second_page(const MemoryCell& cell) {
  return cell.offset / kPage != (cell.offset + cell.length - 1) / kPage;
}

std::vector<MemoryCell> MemoryLayout::cells_of(std::uint32_t thread) const {
  return {{shift + thread * small_length, small_length},
          {kCacheLine + shift + thread * small_length, small_length},
          {shift + large.at(thread), large_length}};
}

MemoryCell MemoryLayout::unsynced() const {
  const MemoryCell last = cells_of(kMemoryThreads - 1)[1];
  const Bytes end = last.offset + last.length;
  return {last.is_of_words() ? 2 * kCacheLine : end, kWord};
}

std::vector<std::size_t> cells_of_sync(std::uint32_t thread, std::size_t turn) {
  constexpr std::array<std::array<bool, kCellsOfThread>, 4> kTurns{
      {{true, false, false}, {true, false, true}, {false, true, false}, {true, true, true}}};
  std::vector<std::size_t> cells;
  for (std::size_t cell = 0; cell < kCellsOfThread; ++cell) {
    if (kTurns[turn % kTurns.size()][cell]) cells.push_back(thread * kCellsOfThread + cell);
  }
  return cells;
}

MemoryPlan threads_plan(const MemorySystem& system) {
  return {.epochs = {{{4}}, {{3}}}, .copies = system.copies.least};
}

MemoryPlan generated_memory_plan(const MemorySystem& system, pmem::Tape& tape,
                                 std::uint32_t failures) {
  constexpr std::size_t kMostSyncs = 5;
  constexpr std::array<Picoseconds, 3> kPauses{Picoseconds{}, Microseconds(2), Microseconds(20)};
  MemoryPlan plan;
  plan.is_generated = true;
  pmem::Choices& world = tape.stream("world");
  draw_lengths(tape.stream("lengths"), plan.layout);
  if (world.choose(2) == 1) put_over_pages(world, plan.layout);
  const bool may_have_more = system.copies.most > system.copies.least;
  plan.copies =
      static_cast<std::uint32_t>(system.copies.least + (may_have_more ? world.choose(2) : 0));
  for (std::uint32_t thread = 0; thread < kMemoryThreads; ++thread) {
    pmem::Choices& choices = tape.stream(fmt::format("client-{}", thread));
    std::vector<MemoryThreadPlan>& epochs = plan.epochs.emplace_back();
    for (std::uint32_t epoch = 0; epoch <= failures; ++epoch) {
      MemoryThreadPlan& one = epochs.emplace_back();
      one.syncs = choices.choose(kMostSyncs);
      one.pause = kPauses[choices.choose(kPauses.size())];
    }
  }
  plan.reads = tape.stream("store").choose(2) == 0;
  plan.promoted = tape.stream("promoted").choose(1 + plan.copies);
  pmem::Choices& moves = tape.stream("moves");
  const bool moves_any = moves.choose(2) == 1;
  for (std::uint32_t failure = 0; failure < failures; ++failure) {
    plan.moves.push_back(moves_any ? moves.choose(1 + plan.copies) : 0);
  }
  return plan;
}

}  // namespace perdura::services
