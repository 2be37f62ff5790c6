// The store buffer of a simulated thread, as in x86-TSO: the thread's stores and posted operations
// reach memory and the device in order, each at a later time of its own; the thread itself sees its
// stores at once. Used by simulations in which time decides nothing (SimPlatform::relax).
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "platform/base/units.h"

namespace perdura::sim {

class StoreBuffer {
 public:
  struct BufferedStore {
    const void* memory = nullptr;  // which memory is stored to; null for the posting of operations
    Bytes offset = 0;
    std::vector<std::byte> bytes{};
    std::function<void()> effect{};
  };

  bool empty() const { return entries_.empty(); }
  void push(BufferedStore entry) { entries_.push_back(std::move(entry)); }
  void clear() { entries_.clear(); }
  // Removes the oldest entry, or all entries, and applies its effect.
  void drain_one();
  void drain();

  // Overwrites what the thread has read from memory with its own buffered stores.
  void forward(const void* memory, Bytes offset, std::span<std::byte> into) const;

  void append_state(std::string& state) const;

 private:
  std::vector<BufferedStore> entries_;  // the oldest first; never many
};

}  // namespace perdura::sim
