// The translations of a registration as ranges: RangeMTT, a b-tree of entries that each translate a
// range of adjacent pages ("Building Distributed Systems with Non-Volatile Main Memories and RDMA
// Networks", sections 5.1.2 and 5.2). FlatMtt beside it is what NICs have: an array with an entry
// for each page.
//
// Pages of the registration have numbers of 32 bits, and so have the lengths of entries, so that a
// registration has up to 16 TiB in pages of 4 KiB. Entries do not overlap; pages between them are
// holes. Entries that adjoin in the registration and in memory are merged, up to the longest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace perdura::fabric {

struct RangeEntry {
  std::uint32_t base = 0;    // the first page of the registration
  std::uint32_t pages = 0;   // never 0
  std::uint64_t target = 0;  // the page of memory that is the first one
  // The page after the last one.
  std::uint64_t end() const { return std::uint64_t{base} + pages; }
  friend bool operator==(const RangeEntry&, const RangeEntry&) = default;
};

class RangeMtt {
 public:
  // The work since the table was made.
  struct Counts {
    std::uint64_t inserts = 0;  // entries that were made
    std::uint64_t removes = 0;  // entries that were removed, or became part of another
    std::uint64_t splits = 0;   // entries that were cut in two by a change of their middle
    std::uint64_t merges = 0;   // pairs of entries that became one
    std::uint64_t node_splits = 0;
    std::uint64_t node_merges = 0;
  };
  struct LookUp {
    std::optional<RangeEntry> entry;  // that has the page; none: the page is in a hole
    std::uint32_t visits = 0;         // nodes on the way to it
  };

  RangeMtt();

  // Translates these pages as the entry says, in place of what translated them before. Throws
  // PlatformError, and changes nothing, if it has no pages or pages beyond the last number.
  void map(const RangeEntry& entry);
  // Makes a hole of these pages. `count` may reach beyond the last page.
  void unmap(std::uint32_t base, std::uint64_t count);

  LookUp find(std::uint32_t page) const;
  // The first entry that has this page or a later one.
  std::optional<RangeEntry> first_from(std::uint64_t page) const;
  // Calls `use` for all entries, in order.
  void each(const std::function<void(const RangeEntry&)>& use) const;

  std::size_t entries() const { return entries_; }
  std::uint64_t pages() const { return pages_; }
  std::uint32_t height() const { return nodes_[root_].height + 1; }
  const Counts& counts() const { return counts_; }
  // Throws std::logic_error if the tree is not as a b-tree must be; for tests.
  void audit() const;

 private:
  static constexpr std::uint32_t kMost = 32;  // entries or children of a node
  static constexpr std::uint32_t kLeast = kMost / 2;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  // Has entries if its height is 0, otherwise children. Keys are exact: the first page of an entry,
  // or of the first entry below a child.
  struct Node {
    std::uint32_t count = 0;
    std::uint32_t height = 0;
    std::array<std::uint32_t, kMost> key{};
    std::array<std::uint32_t, kMost> value{};  // pages of the entry; number of the child
    std::array<std::uint64_t, kMost> target{};
    RangeEntry entry(std::uint32_t i) const { return {key[i], value[i], target[i]}; }
  };

  std::uint32_t make_node(std::uint32_t height);
  // The last key of the node that is at most `page`; kNone if there is none.
  static std::uint32_t last_up_to(const Node& node, std::uint32_t page);
  static void move(Node& from, std::uint32_t first, std::uint32_t count, Node& to,
                   std::uint32_t at);
  static void make_room(Node& node, std::uint32_t at);
  static void close_gap(Node& node, std::uint32_t at);
  // The entry that begins last at this page or before.
  std::optional<RangeEntry> last_before(std::uint32_t page) const;

  void insert(const RangeEntry& entry);
  // Returns the node that was split off `number`, or kNone.
  std::uint32_t insert_below(std::uint32_t number, const RangeEntry& entry);
  std::uint32_t insert_here(std::uint32_t number, std::uint32_t at, std::uint32_t key,
                            std::uint32_t value, std::uint64_t target);
  void remove(std::uint32_t base);
  void remove_below(std::uint32_t number, std::uint32_t base);
  // Takes entries of a sibling for a child that has too few, or makes one node of the two.
  void refill(Node& parent, std::uint32_t child);
  void set_pages(std::uint32_t base, std::uint32_t pages);
  void each_below(std::uint32_t number, const std::function<void(const RangeEntry&)>& use) const;
  std::size_t audit_below(std::uint32_t number, std::uint64_t low, std::uint64_t high) const;

  std::vector<Node> nodes_;
  std::vector<std::uint32_t> free_;  // nodes that are not part of the tree
  std::uint32_t root_ = 0;
  std::size_t entries_ = 0;
  std::uint64_t pages_ = 0;
  Counts counts_;
};

// The array of NICs: one entry for each page, found at once.
class FlatMtt {
 public:
  // As those of RangeMtt. map() and unmap() return the number of entries that they wrote.
  std::uint64_t map(const RangeEntry& entry);
  std::uint64_t unmap(std::uint32_t base, std::uint64_t count);
  // The page of memory; none: a hole.
  std::optional<std::uint64_t> find(std::uint32_t page) const;
  std::size_t entries() const { return entries_; }

 private:
  static constexpr std::uint64_t kHole = ~std::uint64_t{0};
  std::vector<std::uint64_t> targets_;
  std::size_t entries_ = 0;
};

}  // namespace perdura::fabric
