#include "platform/pmem/sim/region_memory.h"

#include <sys/mman.h>

#include <cstring>
#include <map>
#include <new>
#include <vector>

namespace perdura::pmem::sim {
namespace {

// A larger block is not kept for reuse: zeroing it takes longer than mapping a new one, of which
// few pages are touched.
constexpr Bytes kLargestKept = 1 * MiB;
// The limit for each thread. It suffices for the small platforms of crash exploration, and is far
// less than the memory of large ones.
#if defined(__SANITIZE_ADDRESS__)
constexpr Bytes kMostKept = 0;  // blocks that are used again would hide a use after free
#else
constexpr Bytes kMostKept = 4 * MiB;
#endif

class FreeBlocks {
 public:
  FreeBlocks() = default;
  FreeBlocks(const FreeBlocks&) = delete;
  FreeBlocks& operator=(const FreeBlocks&) = delete;
  ~FreeBlocks() {
    for (const auto& [length, blocks] : by_length_) {
      for (void* const block : blocks) ::munmap(block, length);
    }
  }

  // Null if there is no free block of that length.
  void* take(Bytes length) {
    const auto found = by_length_.find(length);
    if (found == by_length_.end() || found->second.empty()) return nullptr;
    void* const block = found->second.back();
    found->second.pop_back();
    kept_ -= length;
    return block;
  }
  bool keep(void* block, Bytes length) {
    if (length > kLargestKept || length > kMostKept - kept_) return false;
    by_length_[length].push_back(block);
    kept_ += length;
    return true;
  }

 private:
  std::map<Bytes, std::vector<void*>> by_length_;
  Bytes kept_ = 0;
};

FreeBlocks& free_blocks() {
  thread_local FreeBlocks blocks;
  return blocks;
}

}  // namespace

std::shared_ptr<void> allocate_region(Bytes size) {
  const Bytes length = round_up(size, 4 * KiB);
  void* block = free_blocks().take(length);
  if (block != nullptr) {
    std::memset(block, 0, length);
  } else {
    block = ::mmap(nullptr, length, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED) throw std::bad_alloc();
  }
  return std::shared_ptr<void>(block, [length](void* p) {
    if (!free_blocks().keep(p, length)) ::munmap(p, length);
  });
}

}  // namespace perdura::pmem::sim
