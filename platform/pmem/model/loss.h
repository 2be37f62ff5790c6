// A change that a power failure has undone: how far it was known to have come, and which rule of
// the model allows its loss.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "platform/base/units.h"
#include "platform/pmem/model/persistence_state.h"
#include "platform/pmem/model/rules.h"

namespace perdura::pmem {

// Where a change was when the power failed, at worst: the last place that it was known to have
// reached.
enum class LostIn : std::uint8_t {
  write_combining_buffer,  // a non-temporal store before the fence
  cache,                   // a store that was not flushed
  write_back,              // flushed, but the fence had not ended
  network,                 // the device was not known to have the message
  device,                  // the device has accepted the message
  cache_of_device,         // placed into the last-level cache by DDIO
  controller,              // visible, on the way to the memory controller
};
std::string_view to_string(LostIn where);

struct Loss {
  PersistenceState::RegionAddress place;      // where the line begins
  std::uint64_t mask = 0;                     // the bytes of the line that are lost
  std::array<std::byte, kCacheLine> bytes{};  // the change
  LostIn where{};
  Rule rule{};                                // the rule that allows the loss
  PersistenceState::Writer writer = nullptr;  // null if a device wrote it
  PersistenceState::Operation operation;      // unset unless a device wrote it
};

// The rule's statement about durability, as a sentence; for the rules that a Loss names.
std::string_view meaning(Rule rule);

}  // namespace perdura::pmem
