// The pages of data that log entries may refer to, for those who read logs and manage no pages: clients,
// and whoever examines the memory of an MDS.
#pragma once

#include <cstdint>

#include "systems/nova/owner.h"
#include "systems/orion/protocol/layout.h"

namespace perdura::systems::orion {

class KnownPages final : public nova::Owner {
 public:
  void set(std::uint32_t groups, std::uint64_t pages) {
    groups_ = groups;
    pages_ = pages;
  }
  bool are_pages(std::uint64_t first, std::uint64_t count) const override {
    return group_of(first) < groups_ && page_of(first) >= 1 && page_of(first) < pages_ &&
           count <= pages_ - page_of(first);
  }
  // Only the MDS manages them.
  std::uint64_t mark_used(std::uint64_t, std::uint64_t) override { return 0; }
  void free(std::uint64_t, std::uint64_t) override {}
  bool is_used(std::uint64_t) const override { return true; }
  void changed(std::uint64_t) override {}

 private:
  std::uint32_t groups_ = 0;
  std::uint64_t pages_ = 0;
};

}  // namespace perdura::systems::orion
