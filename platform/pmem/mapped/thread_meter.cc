#include "platform/pmem/mapped/thread_meter.h"

#include <bit>

namespace perdura::pmem::mapped {

void PublishedWrites::store(const Writes& writes) {
  const auto words = std::bit_cast<std::array<std::uint64_t, kWords>>(writes);
  for (std::size_t i = 0; i < kWords; ++i) words_[i].store(words[i], std::memory_order_relaxed);
}

Writes PublishedWrites::read() const {
  std::array<std::uint64_t, kWords> words;
  for (std::size_t i = 0; i < kWords; ++i) words[i] = words_[i].load(std::memory_order_relaxed);
  return std::bit_cast<Writes>(words);
}

}  // namespace perdura::pmem::mapped
