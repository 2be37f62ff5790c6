// Byte-accurate simulated memory with a short past.
//
// Memory holds the newest bytes. A store of a simulated CPU is made at once, though the moment at
// which it becomes visible lies ahead, when the charges before it are paid; a WRITE of a device is
// applied when its first line is placed, though its last arrives later. Each such change keeps the
// bytes that it replaced for as long as somebody may still look at a moment before it was visible.
// So a device that reads a range line by line, each at its own moment, sees exactly what had become
// visible by then: an object half old and half new, where hardware would show one.
#pragma once

#include <span>
#include <vector>

#include "platform/runtime/ring.h"
#include "platform/units.h"

namespace perdura::pmem::sim {

// Evenly spaced moments, one a cache line of a range. `first` is the earliest; lines follow in the
// order of addresses, or in another one: line i is number (i * stride + shift) mod count.
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

class Timeline {
 public:
  enum class Writer : std::uint8_t { cpu, device };

  explicit Timeline(std::byte* base) : base_(base) {}

  // Changes a range; line i becomes visible at visible.of(i). `now` is the engine's time.
  void change(Time now, Bytes offset, std::span<const std::byte> bytes, Writer writer,
              LineTimes visible);

  // What a device sees that looks at line i at `seen.of(i)`, none later than now.
  void device_read(Bytes offset, std::span<std::byte> into, LineTimes seen) const;

  // What a CPU of the node sees at `when`: every CPU's stores, and of devices what has been placed.
  void cpu_read(Bytes offset, std::span<std::byte> into, Time when) const;

  // Between these a device reads and may look at moments from `from` on.
  void begin_device_read(Time from) { readers_.push_back(from); }
  void end_device_read(Time from);

  std::size_t changes_remembered() const { return changes_.size(); }

 private:
  struct Change {
    Bytes offset = 0;
    LineTimes visible{};
    Time last_visible{};
    Writer writer = Writer::cpu;
    std::vector<std::byte> replaced{};
  };

  // Puts back what `change` replaced where it was not yet visible.
  template <class MomentOfLine>
  static void undo(const Change& change, Bytes offset, std::span<std::byte> into,
                   MomentOfLine moment);
  void forget_before(Time now);

  std::byte* base_;
  Ring<Change> changes_;                              // in the order made
  std::vector<std::vector<std::byte>> free_buffers_;  // of forgotten changes
  std::vector<Time> readers_;
};

}  // namespace perdura::pmem::sim
