// An id allocator: hands out the additional buckets of an index, which have numbers from 0 on. A
// bucket that is full gets one and keeps it. Several workers may allocate at the same time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "platform/runtime/sync.h"

namespace perdura::systems::bucket_hash {

class IdAllocator {
 public:
  // There are so many, all free.
  void reset(std::uint64_t numbers) {
    numbers_ = numbers;
    next_ = 0;
    given_back_.clear();
  }
  std::optional<std::uint64_t> take();
  // After a crash: `taken[i]` says whether i is in use.
  void recover(const std::vector<bool>& taken);

  // These only while nobody takes one.
  std::uint64_t taken() const { return next_ - given_back_.size(); }
  // It and those after it are free.
  std::uint64_t end() const { return next_; }

 private:
  SpinLock lock_;
  std::uint64_t numbers_ = 0;
  std::uint64_t next_ = 0;
  std::vector<std::uint64_t> given_back_;
};

}  // namespace perdura::systems::bucket_hash
