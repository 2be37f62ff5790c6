// An id allocator for the additional buckets of an index (overflow blocks, added SBuckets). A full
// bucket allocates one and never frees it. Ids are integers from 0. Several workers may allocate
// concurrently.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "platform/runtime/sync.h"

namespace perdura::systems::bucket_hash {

class IdAllocator {
 public:
  // Makes the ids 0 to `numbers - 1` free.
  void reset(std::uint64_t numbers) {
    numbers_ = numbers;
    next_ = 0;
    given_back_.clear();
  }
  std::optional<std::uint64_t> take();
  // Rebuilds the allocator after a crash: `taken[i]` says whether id i is in use.
  void recover(const std::vector<bool>& taken);

  // The number of ids in use. This and end() must not run concurrently with take().
  std::uint64_t taken() const { return next_ - given_back_.size(); }
  // Id end() and all higher ids are free.
  std::uint64_t end() const { return next_; }

 private:
  SpinLock lock_;
  std::uint64_t numbers_ = 0;
  std::uint64_t next_ = 0;
  std::vector<std::uint64_t> given_back_;
};

}  // namespace perdura::systems::bucket_hash
