#include "platform/sim/kernel/store_buffer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace perdura::sim {

void StoreBuffer::drain_one() {
  const std::function<void()> effect = std::move(entries_.front().effect);
  entries_.erase(entries_.begin());
  effect();
}

void StoreBuffer::drain() {
  while (!empty()) drain_one();
}

void StoreBuffer::forward(const void* memory, Bytes offset, std::span<std::byte> into) const {
  for (const BufferedStore& entry : entries_) {
    if (entry.memory != memory) continue;
    const Bytes begin = std::max(offset, entry.offset);
    const Bytes end = std::min(offset + into.size(), entry.offset + entry.bytes.size());
    if (begin >= end) continue;
    std::memcpy(into.data() + (begin - offset), entry.bytes.data() + (begin - entry.offset),
                end - begin);
  }
}

void StoreBuffer::append_state(std::string& state) const {
  for (const BufferedStore& entry : entries_) {
    state.append(reinterpret_cast<const char*>(&entry.offset), sizeof(entry.offset));
    state.append(reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size());
    state += entry.memory == nullptr ? 'p' : 's';
  }
  state += ';';
}

}  // namespace perdura::sim
