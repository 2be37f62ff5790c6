#include "systems/nova/block_map.h"

namespace perdura::systems::nova {

Mapped BlockMap::get(std::uint64_t index) const {
  if (!reaches(index)) return {};
  std::uint64_t slot = root_;
  for (int height = height_; height > 0 && slot != 0; --height) {
    slot = node(slot).slots[index >> (height - 1) * kBits & (kFan - 1)];
  }
  return Mapped(slot);
}

Mapped BlockMap::set(std::uint64_t index, Mapped mapped) {
  while (!reaches(index)) {
    if (root_ != 0) {
      Node* const above = new Node;
      above->slots[0] = root_;
      above->used = 1;
      root_ = reinterpret_cast<std::uint64_t>(above);
    }
    ++height_;
  }
  std::uint64_t* slot = &root_;
  std::uint32_t* used = nullptr;
  for (int height = height_; height > 0; --height) {
    if (*slot == 0) {
      *slot = reinterpret_cast<std::uint64_t>(new Node);
      if (used != nullptr) ++*used;
    }
    Node& here = node(*slot);
    used = &here.used;
    slot = &here.slots[index >> (height - 1) * kBits & (kFan - 1)];
  }
  if (*slot == 0 && used != nullptr) ++*used;
  return Mapped(std::exchange(*slot, mapped.word()));
}

void BlockMap::destroy(std::uint64_t slot, int height) {
  if (height == 0 || slot == 0) return;
  for (const std::uint64_t child : node(slot).slots) destroy(child, height - 1);
  delete &node(slot);
}

void BlockMap::clear() {
  destroy(root_, height_);
  root_ = 0;
  height_ = 0;
}

}  // namespace perdura::systems::nova
