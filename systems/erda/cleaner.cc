#include "systems/erda/cleaner.h"

#include <mutex>

namespace perdura::systems::erda {

Task<> Cleaner::clean(std::uint8_t head) {
  if (!co_await merge(head) || !co_await replicate(head)) {
    const std::scoped_lock lock(store_.lock());
    store_.abandon_cleaning(head);
    co_return;
  }
  co_await switch_tags(head);
}

// Scans the log backwards: later objects are newer, so the first version found of a key is the one
// to keep. A version that was never written does not reveal its key, so its entry is looked up
// after the scan, and the previous version is merged then.
Task<bool> Cleaner::merge(std::uint8_t head) {
  std::size_t left = 0;
  {
    const std::scoped_lock lock(store_.lock());
    store_.space().begin_merging(head);
    left = store_.space().region_1(head).objects().size();
  }
  while (left-- > 0) {
    {
      const std::scoped_lock lock(store_.lock());
      const Position position{store_.space().region_1(head).objects()[left]};
      if (!store_.merge_object(head, position, scratch_)) co_return false;
    }
    co_await yield();
  }
  std::vector<Position> restored;
  {
    const std::scoped_lock lock(store_.lock());
    restored = store_.restore_unwritten(head, scratch_);
  }
  for (const Position position : restored) {
    {
      const std::scoped_lock lock(store_.lock());
      if (!store_.merge_object(head, position, scratch_)) co_return false;
    }
    co_await yield();
  }
  co_return true;
}

Task<bool> Cleaner::replicate(std::uint8_t head) {
  std::size_t next = 0;
  std::size_t end = 0;
  Position to;
  {
    const std::scoped_lock lock(store_.lock());
    Space& space = store_.space();
    next = space.objects_before_merging(head);
    end = space.region_1(head).objects().size();
    if (!space.begin_replicating(head)) co_return false;
    to = space.reserved_begin(head);
  }
  for (; next < end; ++next) {
    {
      const std::scoped_lock lock(store_.lock());
      const Position position{store_.space().region_1(head).objects()[next]};
      to = store_.replicate_object(head, position, to, scratch_);
    }
    co_await yield();
  }
  co_return true;
}

Task<> Cleaner::switch_tags(std::uint8_t head) {
  std::size_t end = 0;
  {
    const std::scoped_lock lock(store_.lock());
    store_.space().begin_switching(head);
    end = store_.space().region_1(head).objects().size();
  }
  for (std::size_t i = 0; i < end; ++i) {
    {
      const std::scoped_lock lock(store_.lock());
      const Position position{store_.space().region_1(head).objects()[i]};
      store_.switch_object(head, position, scratch_);
    }
    co_await yield();
  }
  const std::scoped_lock lock(store_.lock());
  store_.end_cleaning(head);
}

}  // namespace perdura::systems::erda
