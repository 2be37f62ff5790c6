// Write accounting: counts writes to persistent memory, in every unit that the field's papers use,
// separately for local stores and one-sided operations. docs/accounting.md has the counting rules
// with examples.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "platform/base/units.h"

namespace perdura::pmem {

// The bit fields of an 8-byte word, from the least significant bit on; the widths add up to 64. A
// store with a layout counts the full width of each field that it changes, and nothing for the
// others: the unit of papers that count "bytes per field" under data-comparison write.
struct WordLayout {
  std::array<std::uint8_t, 8> widths{};
};
inline constexpr WordLayout kWholeWord{{64}};

// The total width, in bits, of the fields of `layout` in which the two words differ.
std::uint64_t changed_field_bits(const WordLayout& layout, std::uint64_t before,
                                 std::uint64_t after);

enum class Cause : std::uint8_t { local_store, one_sided };

struct WriteCounts {
  std::uint64_t stores = 0;            // calls of store functions, or messages placed
  std::uint64_t flushes = 0;           // cache lines flushed
  std::uint64_t fences = 0;            // drains
  std::uint64_t field_bits = 0;        // fields written, in bits (see WordLayout)
  std::uint64_t bytes_issued = 0;      // bytes written, whether or not they change anything
  std::uint64_t bytes_programmed = 0;  // bytes that differ from what they replace
  std::uint64_t bits_flipped = 0;      // bits that differ
  std::uint64_t lines = 0;             // 64-byte lines that reached the memory controller
  std::uint64_t media_bytes = 0;       // 256-byte media lines that the XPBuffer writes, in bytes

  WriteCounts& operator+=(const WriteCounts& other);
  WriteCounts& operator-=(const WriteCounts& other);
  friend bool operator==(const WriteCounts&, const WriteCounts&) = default;
};

struct Writes {
  WriteCounts local_store;
  WriteCounts one_sided;

  WriteCounts& by(Cause cause) { return cause == Cause::local_store ? local_store : one_sided; }
  WriteCounts total() const;
  Writes& operator+=(const Writes& other);
  Writes& operator-=(const Writes& other);
  friend bool operator==(const Writes&, const Writes&) = default;
};

// A model of the XPBuffer, the write-combining buffer of an Optane DIMM: it holds the most recently
// written media lines and evicts the least recently used one to the media (LRU). The size, 16 KiB,
// is that of Yang et al., FAST 2020.
class XpBuffer {
 public:
  static constexpr int kLines = 64;
  constexpr XpBuffer() {
    first_.fill(kNone);
    next_.fill(kNone);
    for (LineIndex index = 0; index < kLines; ++index) {
      older_[index] = static_cast<LineIndex>((index + 1) % kLines);
      newer_[index] = static_cast<LineIndex>((index + kLines - 1) % kLines);
    }
  }
  // Called when the 64-byte line at this address reaches the DIMM. Returns the number of media
  // lines evicted, 0 or 1.
  int write(std::uint64_t address) {
    // Fast path: consecutive writes mostly go to the same media line.
    const std::uint64_t line = address / kMediaLine + 1;
    return media_line_[newest_] == line ? 0 : write_other(line);
  }

 private:
  using LineIndex = std::uint8_t;
  static constexpr int kBuckets = 2 * kLines;
  static constexpr LineIndex kNone = kLines;

  int write_other(std::uint64_t line);
  static std::size_t bucket_of(std::uint64_t line) {
    return (line * 0x9E3779B97F4A7C15) >> 57;  // 7 bits
  }
  void make_newest(LineIndex index);

  std::array<std::uint64_t, kLines> media_line_{};  // address / 256 + 1; 0: the line is free
  // The lines as a circular doubly linked list in LRU order: the newest's `older_` is the one used
  // before it, and so on until the oldest, whose `older_` is the newest.
  std::array<LineIndex, kLines> older_{};
  std::array<LineIndex, kLines> newer_{};
  LineIndex newest_ = 0;
  // A hash table from media lines to indexes: the first one of each bucket's chain, and for each
  // line the next one in its chain.
  std::array<LineIndex, kBuckets> first_{};
  std::array<LineIndex, kLines> next_{};
};
static_assert(XpBuffer::kLines == 64, "a bucket is 7 bits of a hash");

// Counts the writes of one thread. Not synchronized.
class WriteMeter {
 public:
  // Data-comparison counts need the old contents of memory. They can be switched off (`issued`)
  // where the comparison would disturb a measurement.
  enum class Level : std::uint8_t { issued, compared };

  constexpr explicit WriteMeter(Level level = Level::compared) : level_(level) {}
  void set_level(Level level) { level_ = level; }
  Level level() const { return level_; }

  // Must be called before memory changes. `word` counts one 8-byte store.
  void word(Cause cause, std::uint64_t before, std::uint64_t after, const WordLayout& layout) {
    WriteCounts& counts = writes_.by(cause);
    ++counts.stores;
    counts.bytes_issued += kWord;
    // Without a layout the word is one field that the store rewrites, changed or not.
    counts.field_bits += layout.widths[0] == 64 ? 64 : changed_field_bits(layout, before, after);
    if (level_ == Level::compared) compare(counts, before, after);
  }
  void bytes(Cause cause, std::span<const std::byte> before, std::span<const std::byte> after);
  void flush(std::uint64_t address, Bytes length) {
    writes_.local_store.flushes += lines_of(address, length);
    lines_written(Cause::local_store, address, length);
  }
  void fence() { ++writes_.local_store.fences; }
  // Counts lines that reach the memory controller without a flush: those of one-sided and
  // non-temporal writes.
  void lines_written(Cause cause, std::uint64_t address, Bytes length) {
    writes_.by(cause).lines += lines_of(address, length);
    if (level_ == Level::compared) combine(cause, address, length);
  }

  const Writes& writes() const { return writes_; }

 private:
  // The number of lines that a range touches, at least 1.
  static std::uint64_t lines_of(std::uint64_t address, Bytes length) {
    return (address % kCacheLine + (length == 0 ? 1 : length) + kCacheLine - 1) / kCacheLine;
  }
  static void compare(WriteCounts& counts, std::uint64_t before, std::uint64_t after);
  // Passes the lines of a range through the XPBuffer and counts the evicted media lines.
  void combine(Cause cause, std::uint64_t address, Bytes length);

  Writes writes_;
  XpBuffer xpbuffer_;
  Level level_;
};

}  // namespace perdura::pmem
