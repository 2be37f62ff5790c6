// The names of a directory, in DRAM: found by hash, walked by cookie. The text of a name is only in
// its log entry.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "platform/pmem/region.h"
#include "systems/nova/layout.h"

namespace perdura::systems::nova {

struct Name {
  std::uint64_t cookie = 0;  // ascending in the order in which names were added
  std::uint64_t inode = 0;
  Bytes offset = 0;        // offset of its AddEntry
  std::uint64_t page = 0;  // number of the log page
  std::uint32_t hash = 0;
  std::uint16_t lines = 0;  // length of the entry
  std::uint8_t length = 0;  // length of the name
  std::uint8_t type = 0;    // S_IFMT >> 12; 0: removed

  bool is_directory() const { return type == S_IFDIR >> 12; }
};

class Directory {
 public:
  static std::uint32_t hash_of(std::string_view name);

  // Returns null if there is no such name. The pointer is valid until the next change.
  Name* find(pmem::Region& region, std::string_view name);
  Name* find_cookie(std::uint64_t cookie);
  // Adds a name. Slow if its cookie is not greater than all others, which is rare.
  void add(const Name& name);
  void remove(Name& name);
  // Replaces the inode and the entry of a name, which keeps its place in the directory.
  void replace(Name& name, const Name& by);

  std::uint64_t next_cookie() const { return next_cookie_; }
  std::size_t size() const { return live_; }
  bool empty() const { return live_ == 0; }
  std::uint64_t lines() const {
    return lines_;
  }  // length of the entries of all names, in cache lines
  std::uint32_t subdirectories() const { return subdirectories_; }

  // Calls visit(name) for the names after `cookie`, in the order of cookies, until it returns
  // false.
  template <class Visit>
  void visit(std::uint64_t cookie, Visit&& visit) {
    for (std::size_t i = behind(cookie); i < names_.size(); ++i) {
      if (names_[i].type != 0 && !visit(names_[i])) return;
    }
  }

 private:
  // Index of the first name after `cookie`.
  std::size_t behind(std::uint64_t cookie) const;
  void rebuild();

  std::vector<Name> names_;           // by cookie; includes removed ones
  std::vector<std::uint32_t> table_;  // a hash table of indexes in names_ + 1; 0: never used
  std::size_t live_ = 0;
  std::uint64_t lines_ = 0;
  std::uint64_t next_cookie_ = 1;
  std::uint32_t subdirectories_ = 0;
};

}  // namespace perdura::systems::nova
