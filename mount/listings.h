// The directories that programs have opened to read them, and where each reading ends.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace perdura::mount {

// A program may rename or create an entry for each one that it reads. New names come after all
// others, so such a reading would never end. So a reading ends with the entries that existed when
// it began: when the directory was opened, or was read from its start again (rewinddir). May be
// used by several threads.
class Listings {
 public:
  // Returns the handle that the kernel passes with each read.
  std::uint64_t begin(std::uint64_t last_cookie) {
    const std::lock_guard lock(mutex_);
    last_[++handle_] = last_cookie;
    return handle_;
  }
  void begin_again(std::uint64_t handle, std::uint64_t last_cookie) {
    const std::lock_guard lock(mutex_);
    last_[handle] = last_cookie;
  }
  std::uint64_t last_cookie(std::uint64_t handle) {
    const std::lock_guard lock(mutex_);
    return last_[handle];
  }
  void end(std::uint64_t handle) {
    const std::lock_guard lock(mutex_);
    last_.erase(handle);
  }

 private:
  std::mutex mutex_;
  std::uint64_t handle_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> last_;
};

}  // namespace perdura::mount
