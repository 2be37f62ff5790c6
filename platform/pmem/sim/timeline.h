// Byte-accurate simulated memory that keeps a short past (multi-versioned).
//
// Memory holds the newest bytes. A store of a simulated CPU is made at once, though the moment at
// which it becomes visible lies ahead, when the charges before it are paid; a WRITE of a device is
// applied when its first line is placed, though its last arrives later. Each such change keeps the
// bytes that it replaced for as long as a reader may still ask for a time before it was visible. A
// device that reads a range line by line, each line at its own time, thus sees exactly what had
// become visible by then, including torn objects, half old and half new, where hardware would show
// them.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "platform/base/units.h"
#include "platform/runtime/ring.h"
#include "platform/sim/kernel/storing_thread.h"

namespace perdura::pmem::sim {

// Evenly spaced times, one for each cache line of a range. `first` is the earliest; lines follow in
// the order of addresses, or in another one: line i is number (i * stride + shift) mod count.
struct LineTimes {
  Time first{};
  Picoseconds per_line{};
  std::uint32_t count = 1;
  std::uint32_t stride = 1;
  std::uint32_t shift = 0;

  Time of(std::size_t line) const {
    const std::size_t number = stride == 1 && shift == 0 ? line : (line * stride + shift) % count;
    return first + per_line * static_cast<std::int64_t>(number);
  }
};

// A multiset of times with fast access to the earliest one.
class Earliest {
 public:
  bool empty() const { return added_.size() == removed_.size(); }
  Time get() const { return added_.front(); }
  void add(Time moment);
  // `moment` must have been added.
  void remove(Time moment);

 private:
  // Heaps, the earliest in front. A removed time stays in both until it is the earliest.
  std::vector<Time> added_;
  std::vector<Time> removed_;
};

using perdura::sim::StoringThread;

class Timeline {
 public:
  enum class Writer : std::uint8_t { cpu, device };

  explicit Timeline(std::byte* base) : base_(base) {}

  // Changes a range; line i becomes visible at visible.of(i). `now` is the engine's time, `thread`
  // the storing thread; null for a device.
  void change(Time now, Bytes offset, std::span<const std::byte> bytes, Writer writer,
              LineTimes visible, StoringThread* thread = nullptr);

  // Reads a range as a device sees it that reads line i at `seen.of(i)`, none of which is later
  // than now.
  void device_read(Bytes offset, std::span<std::byte> into, LineTimes seen);

  // Reads a range as a CPU of the node sees it at `when`: every CPU's stores, and everything that
  // devices have placed by then. `reader` is the reading thread; null if the reader is not a thread
  // of the node.
  void cpu_read(Bytes offset, std::span<std::byte> into, Time when,
                const StoringThread* reader = nullptr);

  // The thread's process has died: its stores that would become visible after `from` have never
  // been made. Those that would become visible between `now` and `from` are visible at once.
  void withdraw(const StoringThread& thread, Time now, Time from);

  // Between these calls a device is reading, and may look at times from `from` on.
  void begin_device_read(Time from) { readers_.add(from); }
  void end_device_read(Time from) { readers_.remove(from); }

  // Drops changes that no reader can see undone anymore, so that later reads search fewer. `now`
  // is the engine's time; no reader will begin to look at an earlier one.
  void forget_before(Time now) {
    if (!changes_.empty()) drop_visible(readers_.empty() ? now : std::min(now, readers_.get()));
  }

  // Changes are numbered. next_change(): the number of the next change that is remembered.
  // writer_of(): the writer of a change; nullopt if it is forgotten, since no reader can see the
  // contents before it. amend() sets the bytes that a change has replaced.
  std::uint64_t next_change() const { return first_change_ + changes_.size(); }
  std::optional<Writer> writer_of(std::uint64_t change) const {
    if (change < first_change_) return std::nullopt;
    return changes_[change - first_change_].writer;
  }
  void amend(std::uint64_t change, Bytes offset, std::span<const std::byte> replaced);

  std::size_t changes_remembered() const { return changes_.size(); }
  // The cost of reads: the number of changes that they examined, irrelevant ones included.
  std::uint64_t changes_looked_at() const { return looked_at_; }

 private:
  struct PendingChange {
    Bytes offset = 0;
    LineTimes visible{};
    Time last_visible{};
    Writer writer = Writer::cpu;
    StoringThread* thread = nullptr;
    std::vector<std::byte> replaced{};

    Bytes end() const { return offset + replaced.size(); }
  };
  // A touch records that a change affects a block of memory. With many clients thousands of changes
  // are pending, and a read must not search all of them: the touches of a block form a chain, and a
  // hash table holds the heads of the chains.
  static constexpr Bytes kBlock = 512;
  struct Touch {
    std::uint64_t change = 0;  // its number, counted from the first there ever was
    std::uint64_t block = 0;
    std::uint64_t older = 0;  // number of the next older touch in the chain; none if before the
                              // first kept
  };
  // While there are no more changes than this, they are searched linearly and are in no chain.
  static constexpr std::size_t kFew = 8;

  void drop_visible(Time horizon);
  void put_back(std::size_t change, Bytes begin);
  static void hasten(PendingChange& change, Time now);
  void leave_chains();
  // Calls `visit(change, begin, end)` for the changes that touch a range, in disjoint parts of it;
  // for each part from the newest to the oldest.
  template <class Visit>
  void for_each_change(Bytes offset, Bytes length, Visit visit);
  void chain_up();
  void chain(Touch& touch, std::uint64_t number);
  // Puts back what `change` replaced between `begin` and `end`, where it was not yet visible.
  template <class MomentOfLine>
  static void undo(const PendingChange& change, Bytes begin, Bytes end, Bytes offset,
                   std::span<std::byte> into, MomentOfLine moment);

  std::byte* base_;
  Ring<PendingChange> changes_;                       // in the order made
  std::vector<std::vector<std::byte>> free_buffers_;  // buffers of forgotten changes
  Earliest readers_;
  std::uint64_t looked_at_ = 0;

  // Touches of the changes before number `chained_`, in their order; numbers begin at 1.
  Ring<Touch> touches_;
  std::vector<std::uint64_t> chains_;  // the newest touch of each chain; the size is a power of two
  std::uint64_t first_change_ = 1;     // number of changes_[0]
  std::uint64_t first_touch_ = 1;      // number of touches_[0]
  std::uint64_t chained_ = 1;
};

}  // namespace perdura::pmem::sim
