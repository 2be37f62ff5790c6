// An index in explored memory that may make a mistake: in each of its operations it takes the steps
// that a wrong index would.
#pragma once

#include "systems/bucket_hash/readers.h"
#include "systems/flushing.h"
#include "tests/systems/bucket_hash/explored_memory.h"

namespace perdura::test {

using systems::Flushing;
using systems::bucket_hash::Readers;

template <class Hash>
class MistakenIndex {
 public:
  using Index = typename Hash::Index;
  using Outcome = typename Index::Outcome;
  using Slot = systems::bucket_hash::Slot;

  // Without a mistake its steps are taken as it takes them, and not recorded.
  MistakenIndex(ExploredRegion& live, const typename Hash::Geometry& geometry,
                Readers readers = Readers::one_sided, Mistake mistake = {})
      : memory_(*live.memory),
        index_(live.region, 0, geometry, Flushing::lines, readers),
        mistake_(std::move(mistake)) {}

  const Index& index() const { return index_; }

  Outcome try_put(const Slot& item) {
    return take(Operation::put, [&] { return Hash::try_put(index_, item); });
  }
  auto erase(const Slot& key) {
    return take(Operation::erase, [&] { return index_.erase(key); });
  }
  void begin_resize() {
    take(Operation::resize, [&] {
      index_.begin_resize();
      return true;
    });
  }
  bool resize_step() {
    return take(Operation::resize, [&] { return index_.resize_step(); });
  }
  // Resizes if that is necessary and allowed.
  bool put(const Slot& item) {
    for (;;) {
      const Outcome outcome = try_put(item);
      if (outcome != Outcome::must_resize) return outcome == Outcome::done;
      begin_resize();
      while (resize_step()) {
      }
    }
  }

 private:
  template <class Do>
  auto take(Operation operation, const Do& do_it) {
    if (!mistake_) return do_it();
    memory_.record();
    const auto result = do_it();
    memory_.take(mistake_(operation, memory_.recorded(), memory_.visible()));
    return result;
  }

  ExploredMemory& memory_;
  Index index_;
  Mistake mistake_;
};

}  // namespace perdura::test
