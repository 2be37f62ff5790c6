// A session's cache of data pages in DRAM, by global page address (section 4.3.2). The buffers are
// registered memory, so pages are READ into them and written from them without another copy.
//
// A page that a file no longer refers to may be given to somebody else. Whoever applies a log entry
// that replaces pages drops them here (drop()), and so does whoever forgets a log.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "platform/platform.h"
#include "systems/orion/protocol/layout.h"

namespace perdura::systems::orion {

class PageCache {
 public:
  PageCache(Thread& thread, std::uint64_t pages);

  const fabric::MemoryRegion& memory() const { return registered_; }
  std::uint64_t size() const { return slots_.size(); }

  // Keeps a buffer from being used for another page.
  class Pin {
   public:
    Pin(PageCache& cache, std::uint32_t slot) : cache_(&cache), slot_(slot) {}
    Pin(Pin&& other) noexcept : cache_(std::exchange(other.cache_, nullptr)), slot_(other.slot_) {}
    Pin& operator=(Pin&&) = delete;
    ~Pin() {
      if (cache_ != nullptr) cache_->unpin(slot_);
    }
    std::span<std::byte> bytes() const { return cache_->buffer(slot_).bytes(); }
    fabric::LocalBuffer buffer() const { return cache_->buffer(slot_); }
    // The buffer has the contents of this page from now on.
    void is_now(std::uint64_t gpa) const { cache_->set(slot_, gpa); }

   private:
    PageCache* cache_;
    std::uint32_t slot_;
  };

  // The buffer of a page, if it is cached.
  std::optional<Pin> find(std::uint64_t gpa);
  // A buffer for any page. Waits while all are pinned.
  Task<Pin> take();
  // The same; nullopt if all are pinned.
  std::optional<Pin> try_take();
  void drop(std::uint64_t first, std::uint64_t count);
  std::uint64_t hits() const { return hits_; }

 private:
  struct Slot {
    std::uint64_t gpa = 0;  // 0: none
    std::uint32_t pins = 0;
    bool used = false;  // since the hand last passed
  };

  fabric::LocalBuffer buffer(std::uint32_t slot) const {
    return registered_.local(slot * kPage, static_cast<std::uint32_t>(kPage));
  }
  void unpin(std::uint32_t slot);
  void set(std::uint32_t slot, std::uint64_t gpa);
  void clear(Slot& slot);

  std::unique_ptr<pmem::Region> memory_;
  fabric::MemoryRegion registered_;
  std::vector<Slot> slots_;
  std::unordered_map<std::uint64_t, std::uint32_t> by_gpa_;
  std::size_t hand_ = 0;
  WaitList waiting_;
  std::uint64_t hits_ = 0;
};

}  // namespace perdura::systems::orion
