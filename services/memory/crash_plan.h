// The plan of a history of replicated memory with failures: where an application's threads store,
// how often they sync, and which copies are promoted.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "platform/base/units.h"
#include "platform/pmem/model/tape.h"
#include "services/crash.h"
#include "services/memory/memory.h"

namespace perdura::services {

inline constexpr std::uint32_t kMemoryThreads = 2;
inline constexpr std::size_t kCellsOfThread = 3;

// The bytes of a cell are those of its version, again and again: all its words hold it, and it may
// begin and end within a word. It is no shorter than a version.
struct MemoryCell {
  Bytes offset = 0;
  Bytes length = kWord;

  bool is_of_words() const { return offset % kWord == 0 && length % kWord == 0; }
};
bool goes_into_a_second_page(const MemoryCell& cell);

// The size of the region, the offset of the large cell of each thread, and the lengths of cells.
struct MemoryLayout {
  Bytes region = 1 * KiB;
  std::array<Bytes, kMemoryThreads> large{256, 640};
  Bytes large_length = 360;
  Bytes small_length = kWord;
  Bytes shift = 0;  // offset within a word of cells that would begin with the word

  // Cells of different threads share a line, and also a word if they do not consist of words. The
  // large cell is not aligned to lines, and takes several requests where slots are small.
  std::vector<MemoryCell> cells_of(std::uint32_t thread) const;
  // A cell that is stored to and never synced. If cells do not consist of words, it shares a word
  // with one of them.
  MemoryCell unsynced() const;
};

// The cells to which a thread stores for its sync point number `turn`.
std::vector<std::size_t> cells_of_sync(std::uint32_t thread, std::size_t turn);

// The sync points of a thread between two failures.
struct MemoryThreadPlan {
  std::size_t syncs = 0;
  Picoseconds pause{};  // after each sync
};

struct MemoryPlan {
  std::vector<std::vector<MemoryThreadPlan>> epochs{};  // by thread
  MemoryLayout layout{};
  std::uint32_t copies = 0;
  bool reads = true;  // the copies are read meanwhile
  // Places are positions in the order of the nodes, in which the primary has 0.
  std::size_t promoted = 0;  // for the inspection, if it may be; 0: the primary is inspected
  // After each failure of the primary: the place of the node that is the primary then, if it may
  // be. The application goes on there.
  std::vector<std::size_t> moves{};
  bool moves_any() const {
    return std::any_of(moves.begin(), moves.end(), [](std::size_t place) { return place > 0; });
  }
  // A copy that answers late, or whose connections break a few times, is waited for.
  bool is_patient = false;
  // Boundaries that runs must meet are counted (CrashScenario::events()).
  bool is_generated = false;
};

// A region of a page, the fewest copies, and the primary inspected.
MemoryPlan threads_plan(const MemorySystem& system);
// A region of a page or of three, cells of words or of bytes, the fewest copies or one more, and
// copies that are promoted before the first failure and after each of `failures`. Streams of the
// tape:
//
//   world       how large the region is, and how many copies there are
//   lengths     how long cells are, and where in a word they begin
//   client-N    how often application thread N syncs
//   store       whether copies are read
//   promoted    which copy is promoted for the inspection
//   moves       which copies are promoted after failures
//
// 0 is the simplest choice.
MemoryPlan generated_memory_plan(const MemorySystem& system, pmem::Tape& tape,
                                 std::uint32_t failures);

}  // namespace perdura::services
