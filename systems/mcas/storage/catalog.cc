#include "systems/mcas/storage/catalog.h"

#include <algorithm>
#include <cstring>

namespace perdura::systems::mcas {

namespace {

constexpr std::uint64_t kPhase = 3;
constexpr std::uint64_t kIndex = 4;
constexpr std::uint32_t kIdentifier = 8;

std::uint64_t state_of(const Catalog::PoolEntry& entry) {
  return entry.identifier << kIdentifier | (entry.has_index ? kIndex : 0) |
         static_cast<std::uint64_t>(entry.phase);
}

}  // namespace

void Catalog::format() {
  for (SlotNumber i = 0; i < entries_.size(); ++i) {
    memory_.region().write_object(slot_offset(i), CatalogSlot{});
  }
  memory_.persist({offset_, size(static_cast<std::uint32_t>(entries_.size()))});
  std::fill(entries_.begin(), entries_.end(), PoolEntry{});
}

void Catalog::recover() {
  // A process that died leaves what is visible, not what is durable (docs/restart.md).
  memory_.persist({offset_, size(static_cast<std::uint32_t>(entries_.size()))});
  for (SlotNumber i = 0; i < entries_.size(); ++i) {
    const auto slot = memory_.region().read_object<CatalogSlot>(slot_offset(i));
    PoolEntry& entry = entries_[i];
    entry.phase = static_cast<Phase>(slot.state & kPhase);
    entry.has_index = (slot.state & kIndex) != 0;
    entry.identifier = slot.state >> kIdentifier;
    entry.root = slot.root;
    entry.limit = slot.limit;
    entry.name.assign(slot.name.data(), strnlen(slot.name.data(), CatalogSlot::kLongestName));
  }
}

std::optional<Catalog::SlotNumber> Catalog::find(std::string_view name) const {
  for (SlotNumber i = 0; i < entries_.size(); ++i) {
    if (entries_[i].phase == Phase::exists && entries_[i].name == name) return i;
  }
  return std::nullopt;
}

std::optional<Catalog::SlotNumber> Catalog::find_free() const {
  for (SlotNumber i = 0; i < entries_.size(); ++i) {
    if (entries_[i].phase == Phase::free) return i;
  }
  return std::nullopt;
}

std::uint64_t Catalog::next_identifier() const {
  std::uint64_t largest = 0;
  for (const PoolEntry& entry : entries_) largest = std::max(largest, entry.identifier);
  return largest + 1;
}

void Catalog::add(SlotNumber slot, std::string_view name, std::uint64_t identifier, Bytes root,
                  Bytes limit) {
  entries_[slot] = {Phase::exists, false, identifier, root, limit, std::string(name)};
  CatalogSlot written{.root = root, .limit = limit};
  std::copy(name.begin(), name.end(), written.name.begin());
  // Writes all but the state, by which the slot is still free.
  const ByteRange rest{slot_offset(slot) + kWord, sizeof written - kWord};
  memory_.region().write(rest.offset, std::as_bytes(std::span(&written, 1)).subspan(kWord));
  memory_.persist(rest);
  store_state(slot);
}

void Catalog::set_has_index(SlotNumber slot, bool has_index) {
  entries_[slot].has_index = has_index;
  store_state(slot);
}

void Catalog::begin_removal(SlotNumber slot) {
  entries_[slot].phase = Phase::being_removed;
  store_state(slot);
}

void Catalog::end_removal(SlotNumber slot) {
  entries_[slot].phase = Phase::free;
  store_state(slot);
}

void Catalog::store_state(SlotNumber slot) {
  memory_.store_durably(slot_offset(slot), state_of(entries_[slot]));
}

}  // namespace perdura::systems::mcas
