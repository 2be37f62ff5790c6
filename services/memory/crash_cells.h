// Cells of replicated memory in a history with failures: storing a version into one, and reading
// one such that a torn one is recognized.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "platform/pmem/view.h"
#include "services/memory/cell_judge.h"
#include "services/memory/crash_plan.h"
#include "services/memory/specification.h"

namespace perdura::services {

// Words are stored one by one, other bytes by a copy, as an application stores a record.
inline void store_cell(pmem::Region& region, const MemoryCell& cell, std::uint64_t version) {
  if (cell.is_of_words()) {
    const pmem::View<std::uint64_t> words(region, cell.offset, cell.length / kWord);
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = version;
    return;
  }
  const std::vector<std::uint64_t> words(cell.length / kWord + 1, version);
  region.write(cell.offset, std::as_bytes(std::span(words)).first(cell.length));
}

// Returns the version, or kTornCell. `read_bytes(offset, into)` reads the region.
template <class ReadBytes>
std::uint64_t read_cell(const MemoryCell& cell, ReadBytes read_bytes) {
  std::vector<std::uint64_t> words(cell.length / kWord + 1);
  const auto found = std::as_writable_bytes(std::span(words)).first(cell.length);
  read_bytes(cell.offset, found);
  const bool whole = std::equal(found.begin() + kWord, found.end(), found.begin());
  return whole ? words.front() : kTornCell;
}

// Reads all cells of a copy at one instant.
inline MemorySpecification::State read_cells(std::span<const MemoryCell> cells,
                                             MemoryReplica& replica, Bytes size) {
  std::vector<std::byte> region(size);
  replica.read(0, region);
  MemorySpecification::State found;
  for (const MemoryCell& cell : cells) {
    found.push_back(read_cell(cell, [&](Bytes offset, std::span<std::byte> into) {
      std::copy_n(region.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
    }));
  }
  return found;
}

// Reads all cells as an application reads what it has mapped.
inline MemorySpecification::State read_cells(std::span<const MemoryCell> cells,
                                             MappedMemory& memory) {
  MemorySpecification::State found;
  for (const MemoryCell& cell : cells) {
    found.push_back(read_cell(cell, [&](Bytes offset, std::span<std::byte> into) {
      memory.region().read(offset, into);
    }));
  }
  return found;
}

}  // namespace perdura::services
