#include "services/memory/copy_reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace perdura::services {

namespace {

using Operation = MemorySpecification::Operation;
using State = MemorySpecification::State;
using Sync = ClientCall<Operation>;

// The number of the thread's sync points that a copy is done with, and the contents of the thread's
// cells then.
using Position = std::pair<std::size_t, State>;

// Adds the positions that a copy may reach from these ones until a read ends. A sync point that was
// not acknowledged may be missing.
void add_later(const std::vector<const Sync*>& syncs, std::size_t first_cell, Time end,
               std::set<Position>& positions) {
  std::vector<Position> left(positions.begin(), positions.end());
  while (!left.empty()) {
    const auto [done, state] = std::move(left.back());
    left.pop_back();
    for (std::size_t next = done; next < syncs.size(); ++next) {
      if (syncs[next]->call.start > end) break;
      Position later{next + 1, state};
      for (const auto& [cell, version] : syncs[next]->call.operation.stored) {
        later.second.at(cell - first_cell) = version;
      }
      if (positions.insert(later).second) left.push_back(std::move(later));
      if (syncs[next]->call.answered) break;
    }
  }
}

}  // namespace

std::string impossible_read(std::span<const Sync> syncs, std::span<const Sync> reads,
                            std::uint32_t threads, std::size_t cells) {
  for (std::uint32_t thread = 0; thread < threads; ++thread) {
    const std::size_t first = thread * cells;
    std::vector<const Sync*> own;
    for (const Sync& sync : syncs) {
      if (sync.client == thread) own.push_back(&sync);
    }
    std::set<Position> positions{{0, State(cells)}};
    for (const Sync& read : reads) {
      add_later(own, first, read.call.end, positions);
      const auto begin = read.call.operation.found.begin() + static_cast<std::ptrdiff_t>(first);
      const State found(begin, begin + static_cast<std::ptrdiff_t>(cells));
      std::erase_if(positions, [&](const Position& position) { return position.second != found; });
      if (!positions.empty()) continue;
      return fmt::format("impossible for a reader of the copy: {}",
                         MemorySpecification{}.text(read.call));
    }
  }
  return {};
}

}  // namespace perdura::services
