#include "platform/pmem/accounting.h"

#include <bit>
#include <cstring>

namespace perdura::pmem {
namespace {

std::uint64_t bytes_that_differ(std::uint64_t difference) {
  // Folds each byte's bits into its lowest one, and adds those up in the uppermost byte.
  difference |= difference >> 4;
  difference |= difference >> 2;
  difference |= difference >> 1;
  return ((difference & 0x0101010101010101ULL) * 0x0101010101010101ULL) >> 56;
}

}  // namespace

std::uint64_t changed_field_bits(const WordLayout& layout, std::uint64_t before,
                                 std::uint64_t after) {
  std::uint64_t bits = 0;
  unsigned shift = 0;
  for (const unsigned width : layout.widths) {
    if (width == 0) break;
    const std::uint64_t mask = width == 64 ? ~0ULL : ((1ULL << width) - 1) << shift;
    if (((before ^ after) & mask) != 0) bits += width;
    shift += width;
  }
  return bits;
}

WriteCounts& WriteCounts::operator+=(const WriteCounts& other) {
  stores += other.stores;
  flushes += other.flushes;
  fences += other.fences;
  field_bits += other.field_bits;
  bytes_issued += other.bytes_issued;
  bytes_programmed += other.bytes_programmed;
  bits_flipped += other.bits_flipped;
  lines += other.lines;
  media_bytes += other.media_bytes;
  return *this;
}

WriteCounts& WriteCounts::operator-=(const WriteCounts& other) {
  stores -= other.stores;
  flushes -= other.flushes;
  fences -= other.fences;
  field_bits -= other.field_bits;
  bytes_issued -= other.bytes_issued;
  bytes_programmed -= other.bytes_programmed;
  bits_flipped -= other.bits_flipped;
  lines -= other.lines;
  media_bytes -= other.media_bytes;
  return *this;
}

WriteCounts Writes::total() const {
  WriteCounts sum = local_store;
  sum += one_sided;
  return sum;
}

Writes& Writes::operator+=(const Writes& other) {
  local_store += other.local_store;
  one_sided += other.one_sided;
  return *this;
}

Writes& Writes::operator-=(const Writes& other) {
  local_store -= other.local_store;
  one_sided -= other.one_sided;
  return *this;
}

void XpBuffer::make_newest(LineIndex index) {
  if (index == newest_) return;
  const LineIndex oldest = newer_[newest_];
  if (index != oldest) {
    newer_[older_[index]] = newer_[index];
    older_[newer_[index]] = older_[index];
    older_[index] = newest_;
    newer_[index] = oldest;
    newer_[newest_] = index;
    older_[oldest] = index;
  }
  newest_ = index;
}

int XpBuffer::write_other(std::uint64_t line) {
  LineIndex& bucket = first_[bucket_of(line)];
  for (LineIndex index = bucket; index != kNone; index = next_[index]) {
    if (media_line_[index] == line) {
      make_newest(index);
      return 0;
    }
  }
  const LineIndex oldest = newer_[newest_];
  const std::uint64_t evicted = media_line_[oldest];
  if (evicted != 0) {
    LineIndex* link = &first_[bucket_of(evicted)];
    while (*link != oldest) link = &next_[*link];
    *link = next_[oldest];
  }
  media_line_[oldest] = line;
  next_[oldest] = bucket;
  bucket = oldest;
  make_newest(oldest);
  return evicted != 0 ? 1 : 0;
}

void WriteMeter::compare(WriteCounts& counts, std::uint64_t before, std::uint64_t after) {
  const std::uint64_t difference = before ^ after;
  counts.bits_flipped += static_cast<std::uint64_t>(std::popcount(difference));
  counts.bytes_programmed += bytes_that_differ(difference);
}

void WriteMeter::bytes(Cause cause, std::span<const std::byte> before,
                       std::span<const std::byte> after) {
  WriteCounts& counts = writes_.by(cause);
  ++counts.stores;
  counts.bytes_issued += after.size();
  counts.field_bits += after.size() * 8;
  if (level_ == Level::issued) return;
  std::uint64_t flipped = 0;
  std::uint64_t programmed = 0;
  std::size_t i = 0;
  for (; i + 8 <= after.size(); i += 8) {
    std::uint64_t a;
    std::uint64_t b;
    std::memcpy(&a, before.data() + i, 8);
    std::memcpy(&b, after.data() + i, 8);
    const std::uint64_t difference = a ^ b;
    if (difference == 0) continue;
    flipped += static_cast<std::uint64_t>(std::popcount(difference));
    programmed += bytes_that_differ(difference);
  }
  for (; i < after.size(); ++i) {
    const auto difference = static_cast<std::uint8_t>(before[i] ^ after[i]);
    flipped += static_cast<std::uint64_t>(std::popcount(difference));
    programmed += difference != 0 ? 1 : 0;
  }
  counts.bits_flipped += flipped;
  counts.bytes_programmed += programmed;
}

void WriteMeter::combine(Cause cause, std::uint64_t address, Bytes length) {
  std::uint64_t line = address - address % kCacheLine;
  for (std::uint64_t left = lines_of(address, length); left > 0; --left, line += kCacheLine) {
    writes_.by(cause).media_bytes += static_cast<Bytes>(xpbuffer_.write(line)) * kMediaLine;
  }
}

}  // namespace perdura::pmem
