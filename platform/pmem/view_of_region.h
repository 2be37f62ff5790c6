// A view of a region whose flushes and fences somebody wants to know: what is read and stored goes to
// the region. For those who send changed memory to another node.
#pragma once

#include "platform/pmem/region.h"

namespace perdura::pmem {

class ViewOfRegion : public RegionModel {
 public:
  explicit ViewOfRegion(Region& region) : region_(region) {}

  std::uint64_t load(Bytes offset) final { return region_.load(offset); }
  std::uint64_t load_from_memory(Bytes offset) final { return region_.load_from_memory(offset); }
  void scan(Bytes offset, Bytes length) final { region_.scan(offset, length); }
  void read(Bytes offset, std::span<std::byte> into) final { region_.read(offset, into); }
  void store(Bytes offset, std::uint64_t value, const WordLayout& layout) final {
    region_.store(offset, value, layout);
  }
  bool compare_exchange(Bytes offset, std::uint64_t& expected, std::uint64_t desired) final {
    return region_.compare_exchange(offset, expected, desired);
  }
  // A streaming store needs no flush, so it counts as flushed.
  void write(Bytes offset, std::span<const std::byte> from, bool streaming) final {
    if (!streaming) return region_.write(offset, from);
    region_.write_streaming(offset, from);
    flushed(offset, from.size());
  }

 protected:
  Region& region() const { return region_; }
  // Called for what a streaming store has written; flush() and drain() are the view's own.
  virtual void flushed(Bytes offset, Bytes length) = 0;

 private:
  Region& region_;
};

}  // namespace perdura::pmem
