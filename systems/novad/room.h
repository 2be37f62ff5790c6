// Memory of a client for one call, or for one READ, at a time, which grows as it is needed.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>

#include "platform/platform.h"

namespace perdura::systems::novad {

class Room {
 public:
  // Makes it so large at least. What it contains is lost. `number` distinguishes the rooms of the
  // thread that are made, now and earlier.
  void grow(Thread& thread, Bytes size, fabric::Access access, std::string_view purpose,
            std::uint64_t number) {
    if (this->size() >= size) return;
    if (region_ != nullptr) thread.endpoint.deregister_memory(memory_);
    region_.reset();
    region_ = thread.node.create_region(
        fmt::format("novad {} {} of port {}", purpose, number, thread.endpoint.address().port),
        std::max(kSmallest, std::bit_ceil(size)), pmem::Medium::dram);
    memory_ = thread.endpoint.register_memory(*region_, access);
  }
  Bytes size() const { return region_ == nullptr ? 0 : region_->size(); }
  std::uint32_t key() const { return region_ == nullptr ? 0 : memory_.key.value; }
  fabric::LocalBuffer buffer(Bytes length) const {
    return memory_.local(0, static_cast<std::uint32_t>(length));
  }

 private:
  static constexpr Bytes kSmallest = 64 * KiB;

  std::unique_ptr<pmem::Region> region_;
  fabric::MemoryRegion memory_;
};

}  // namespace perdura::systems::novad
