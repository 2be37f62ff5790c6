#include "systems/orion/client/page_cache.h"

#include <fmt/format.h>

namespace perdura::systems::orion {

PageCache::PageCache(Thread& thread, std::uint64_t pages)
    : memory_(thread.node.create_region(
          fmt::format("orion pages of port {}", thread.endpoint.address().port), pages * kPage,
          pmem::Medium::dram)),
      registered_(thread.endpoint.register_memory(*memory_, fabric::Access::local)),
      slots_(pages) {}

std::optional<PageCache::Pin> PageCache::find(std::uint64_t gpa) {
  const auto found = by_gpa_.find(gpa);
  if (found == by_gpa_.end()) return std::nullopt;
  Slot& slot = slots_[found->second];
  slot.used = true;
  ++slot.pins;
  ++hits_;
  return Pin(*this, found->second);
}

Task<PageCache::Pin> PageCache::take() {
  for (;;) {
    if (std::optional<Pin> free = try_take()) co_return std::move(*free);
    co_await wait(waiting_);
  }
}

std::optional<PageCache::Pin> PageCache::try_take() {
  // Twice around: the first time everything may have been used.
  for (std::size_t i = 0; i < 2 * slots_.size(); ++i) {
    const std::size_t at = hand_++ % slots_.size();
    Slot& slot = slots_[at];
    if (slot.pins > 0 || (slot.gpa != 0 && std::exchange(slot.used, false))) continue;
    clear(slot);
    slot.pins = 1;
    return Pin(*this, static_cast<std::uint32_t>(at));
  }
  return std::nullopt;
}

void PageCache::unpin(std::uint32_t slot) {
  if (--slots_[slot].pins == 0) waiting_.wake_one();
}

void PageCache::set(std::uint32_t slot, std::uint64_t gpa) {
  drop(gpa, 1);
  clear(slots_[slot]);
  slots_[slot].gpa = gpa;
  slots_[slot].used = true;
  by_gpa_[gpa] = slot;
}

void PageCache::clear(Slot& slot) {
  if (slot.gpa != 0) by_gpa_.erase(slot.gpa);
  slot.gpa = 0;
}

void PageCache::drop(std::uint64_t first, std::uint64_t count) {
  if (by_gpa_.size() < count) {
    for (Slot& slot : slots_) {
      if (slot.gpa >= first && slot.gpa - first < count) clear(slot);
    }
    return;
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto found = by_gpa_.find(first + i);
    if (found != by_gpa_.end()) clear(slots_[found->second]);
  }
}

}  // namespace perdura::systems::orion
