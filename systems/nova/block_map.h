// Maps the blocks of a file to blocks of memory: a radix tree in DRAM with 64 children a node, as
// high as the length of the file needs. A file of one block has no node. Also records in which page
// of the inode's log the mapping's entry is, so that the log knows its dead pages.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

namespace perdura::systems::nova {

// Where a block of a file is, packed into a word; 0 is a hole.
class Mapped {
 public:
  static constexpr std::uint64_t kPages = std::uint64_t{1} << 23;

  constexpr Mapped() = default;
  constexpr Mapped(std::uint64_t block, bool unwritten, std::uint64_t page)
      : word_(block | page % kPages << 40 | (unwritten ? std::uint64_t{1} << 63 : 0)) {}
  explicit constexpr Mapped(std::uint64_t word) : word_(word) {}

  constexpr explicit operator bool() const { return word_ != 0; }
  constexpr std::uint64_t block() const { return word_ & ((std::uint64_t{1} << 40) - 1); }
  constexpr bool is_unwritten() const { return word_ >> 63 != 0; }
  constexpr std::uint64_t page() const { return word_ >> 40 & (kPages - 1); }  // modulo kPages
  constexpr std::uint64_t word() const { return word_; }

 private:
  std::uint64_t word_ = 0;
};

class BlockMap {
 public:
  BlockMap() = default;
  BlockMap(BlockMap&& other) noexcept
      : root_(std::exchange(other.root_, 0)), height_(std::exchange(other.height_, 0)) {}
  BlockMap& operator=(BlockMap&& other) noexcept {
    std::swap(root_, other.root_);
    std::swap(height_, other.height_);
    return *this;
  }
  ~BlockMap() { clear(); }

  Mapped get(std::uint64_t index) const;
  // Returns the previous mapping.
  Mapped set(std::uint64_t index, Mapped mapped);
  void clear();
  bool empty() const { return root_ == 0; }

  // Calls visit(index, mapped) for all blocks from `first` to `last` that are not holes, in order,
  // until visit() returns false.
  template <class Visit>
  void visit(std::uint64_t first, std::uint64_t last, Visit&& visit) const {
    if (root_ == 0 || !reaches(first)) return;
    walk(root_, height_, 0, first, last, visit);
  }
  // Removes the mappings of `first` to `last`, calling removed(index, mapped) for each.
  template <class Removed>
  void erase(std::uint64_t first, std::uint64_t last, Removed&& removed) {
    if (root_ == 0 || !reaches(first)) return;
    root_ = prune(root_, height_, 0, first, last, removed);
    if (root_ == 0) height_ = 0;
  }

 private:
  static constexpr int kBits = 6;
  static constexpr std::uint64_t kFan = 1 << kBits;
  struct Node {
    std::array<std::uint64_t, kFan> slots{};
    std::uint32_t used = 0;
  };
  static Node& node(std::uint64_t slot) { return *reinterpret_cast<Node*>(slot); }
  // The number of indexes below a subtree of this height, minus one.
  static constexpr std::uint64_t span(int height) {
    return height * kBits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << height * kBits) - 1;
  }
  bool reaches(std::uint64_t index) const { return index <= span(height_); }
  static void destroy(std::uint64_t slot, int height);

  template <class Visit>
  static bool walk(std::uint64_t slot, int height, std::uint64_t base, std::uint64_t first,
                   std::uint64_t last, Visit& visit) {
    if (height == 0) return visit(base, Mapped(slot));
    const std::uint64_t step = span(height - 1) + 1;
    const std::uint64_t begin = first > base ? (first - base) / step : 0;
    for (std::uint64_t i = begin; i < kFan && base + i * step <= last; ++i) {
      const std::uint64_t child = node(slot).slots[i];
      if (child != 0 && !walk(child, height - 1, base + i * step, first, last, visit)) return false;
    }
    return true;
  }

  template <class Removed>
  static std::uint64_t prune(std::uint64_t slot, int height, std::uint64_t base,
                             std::uint64_t first, std::uint64_t last, Removed& removed) {
    if (height == 0) {
      removed(base, Mapped(slot));
      return 0;
    }
    Node& here = node(slot);
    const std::uint64_t step = span(height - 1) + 1;
    const std::uint64_t begin = first > base ? (first - base) / step : 0;
    for (std::uint64_t i = begin; i < kFan && base + i * step <= last; ++i) {
      std::uint64_t& child = here.slots[i];
      if (child == 0) continue;
      child = prune(child, height - 1, base + i * step, first, last, removed);
      if (child == 0) --here.used;
    }
    if (here.used > 0) return slot;
    delete &here;
    return 0;
  }

  std::uint64_t root_ = 0;  // a Mapped if the height is 0, else a Node; 0 if empty
  int height_ = 0;
};

}  // namespace perdura::systems::nova
