#include "platform/fabric/translation/pin_down_cache.h"

#include <bit>

namespace perdura::fabric {
namespace {

// Spreads the tables, so that each one begins in an unrelated set of the cache.
std::uint64_t scattered(std::uint64_t number) {
  constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15;
  number *= kFactor;
  return (number ^ number >> 32) * kFactor >> 40;
}

}  // namespace

// Ranges begin at multiples of 4 KiB as a rule. If the number were the byte, all of them would be in
// a few sets.
TranslationId TranslationId::of_range(std::uint64_t table, Bytes at) {
  constexpr int kPageBits = 12;
  return {table, std::rotr(at, kPageBits)};
}

PinDownCache::PinDownCache(std::uint32_t entries, std::uint32_t ways)
    : ways_(ways), slots_(entries) {}

std::size_t PinDownCache::set_of(const TranslationId& id) const {
  const std::size_t sets = slots_.size() / ways_;
  return (id.number + scattered(id.table)) % sets * ways_;
}

PinDownCache::Access PinDownCache::access(const TranslationId& id) {
  const std::size_t first = set_of(id);
  std::size_t oldest = first;
  for (std::size_t i = first; i < first + ways_; ++i) {
    Slot& slot = slots_[i];
    if (slot.used != 0 && slot.id == id) {
      ++hits_;
      slot.used = ++uses_;
      return {true, i};
    }
    if (slot.used < slots_[oldest].used) oldest = i;
  }
  ++misses_;
  slots_[oldest] = {id, ++uses_};
  return {false, oldest};
}

void PinDownCache::forget(const TranslationId& id) {
  const std::size_t first = set_of(id);
  for (std::size_t i = first; i < first + ways_; ++i) {
    if (slots_[i].id == id) slots_[i] = {};
  }
}

void PinDownCache::forget(std::uint64_t table, std::uint64_t first, std::uint64_t last) {
  for (Slot& slot : slots_) {
    if (slot.id.table == table && slot.id.number >= first && slot.id.number <= last) slot = {};
  }
}

}  // namespace perdura::fabric
