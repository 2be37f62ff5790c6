#include "systems/mcas/hstore_cc/heap_map.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace perdura::systems::mcas::hstore_cc {

namespace {

constexpr std::uint64_t kBits = 64;  // per word
constexpr std::uint64_t kPool = 8;   // the lowest bit of the pool's number in a region's word

// The memory that a bit stands for.
Bytes unit_of(Bytes slot_size) { return slot_size == 0 ? kCacheLine : slot_size; }

Bytes bit_bytes_of(Bytes region_size) { return std::max(kWord, region_size / kSmallestSlot / 8); }

// The bits of a word from `first` to `end`, both of which may be outside of it.
std::uint64_t mask_of(std::uint64_t word, std::uint64_t first, std::uint64_t end) {
  const std::uint64_t from = first > word * kBits ? first - word * kBits : 0;
  const std::uint64_t to = std::min(end - word * kBits, kBits);
  const std::uint64_t below = to == kBits ? ~std::uint64_t{0} : (std::uint64_t{1} << to) - 1;
  return below & ~((std::uint64_t{1} << from) - 1);
}

// Returns the first bit from `bit` on that is used, or free; the number of bits if there is none.
std::uint64_t next(std::span<const std::uint64_t> bits, std::uint64_t bit, bool used) {
  while (bit < bits.size() * kBits) {
    const std::uint64_t word = used ? bits[bit / kBits] : ~bits[bit / kBits];
    const std::uint64_t left = word >> bit % kBits;
    if (left != 0) return bit + static_cast<std::uint64_t>(std::countr_zero(left));
    bit = (bit / kBits + 1) * kBits;
  }
  return bit;
}

}  // namespace

Bytes HeapMap::size(Bytes memory, Bytes region_size) {
  return round_up(kCacheLine + memory / region_size * (kWord + bit_bytes_of(region_size)),
                  kCacheLine);
}

Bytes HeapMap::bit_bytes() const { return bit_bytes_of(geometry_.region_size); }

std::uint64_t HeapMap::word_of(Bytes slot_size) const {
  const int logarithm = slot_size == 0 ? 0 : std::countr_zero(slot_size);
  return pool_ << kPool | static_cast<std::uint64_t>(logarithm);
}

std::uint64_t HeapMap::add_pool() {
  pool_ = memory_.region().load(offset_) + 1;
  memory_.store_durably(offset_, pool_);
  return pool_;
}

std::uint64_t HeapMap::pool_of(ByteRange object) const {
  const std::uint64_t region = (object.offset - geometry_.first) / geometry_.region_size;
  return memory_.region().load(word_offset(region)) >> kPool;
}

// --- objects -------------------------------------------------------------------------------------

template <class Visit>
void HeapMap::for_each_bits(ByteRange object, Visit visit) const {
  const Bytes size = geometry_.slot_size(object.length);
  const Bytes slot_size = object.length <= geometry_.longest_in_region() ? size : 0;
  const Bytes unit = unit_of(slot_size);
  for (Bytes at = object.offset; at < object.offset + size;) {
    const std::uint64_t region = (at - geometry_.first) / geometry_.region_size;
    const Bytes begin = begin_of(region);
    const Bytes end = std::min(object.offset + size, begin + geometry_.region_size);
    visit(Bits{region, slot_size, (at - begin) / unit, (end - begin) / unit});
    at = end;
  }
}

void HeapMap::use(ByteRange object) {
  for_each_bits(object, [this](const Bits& bits) {
    if (!is_divided(bits)) divide(bits.region, bits.slot_size);
    set(bits, true);
  });
}

void HeapMap::free(ByteRange object) {
  for_each_bits(object, [this](const Bits& bits) {
    if (is_divided(bits)) set(bits, false);
  });
}

void HeapMap::free_again(ByteRange object) {
  for_each_bits(object, [this](const Bits& bits) {
    memory_.flush({word_offset(bits.region), kWord});
    if (is_divided(bits)) set(bits, false);
  });
}

bool HeapMap::is_used(ByteRange object) const {
  bool used = true;
  for_each_bits(object, [&](const Bits& bits) {
    used = used && is_divided(bits);
    for (std::uint64_t word = bits.first / kBits; used && word * kBits < bits.end; ++word) {
      const std::uint64_t mask = mask_of(word, bits.first, bits.end);
      used = (load(bits.region, word) & mask) == mask;
    }
  });
  return used;
}

// The bits must be durably 0 before the word makes them valid. If the region belongs to the pool
// already, with slots of another size, they are 0: the heap divides no region that has objects.
void HeapMap::divide(std::uint64_t region, Bytes slot_size) {
  if (memory_.region().load(word_offset(region)) >> kPool != pool_) {
    for (Bytes at = 0; at < bit_bytes(); at += kWord) {
      memory_.region().store(bits_offset(region) + at, 0);
    }
    memory_.persist({bits_offset(region), bit_bytes()});
  }
  memory_.region().store(word_offset(region), word_of(slot_size));
  memory_.flush({word_offset(region), kWord});
}

void HeapMap::set(const Bits& bits, bool used) {
  const std::uint64_t first = bits.first / kBits;
  const std::uint64_t end = (bits.end + kBits - 1) / kBits;
  for (std::uint64_t word = first; word < end; ++word) {
    const std::uint64_t mask = mask_of(word, bits.first, bits.end);
    const std::uint64_t before = load(bits.region, word);
    memory_.region().store(bits_offset(bits.region) + word * kWord,
                           used ? before | mask : before & ~mask);
  }
  memory_.flush({bits_offset(bits.region) + first * kWord, (end - first) * kWord});
}

// --- areas ---------------------------------------------------------------------------------------

template <class Visit>
void HeapMap::for_each_region(ByteRange area, Visit visit) const {
  const std::uint64_t first = (area.offset - geometry_.first) / geometry_.region_size;
  const std::uint64_t end = (area.end() - geometry_.first) / geometry_.region_size;
  std::vector<std::uint64_t> bits;
  for (std::uint64_t region = first; region < end; ++region) {
    const std::uint64_t word = memory_.region().load(word_offset(region));
    if (word >> kPool != pool_) continue;
    const std::uint64_t logarithm = word & ((1U << kPool) - 1);
    const Bytes slot_size = logarithm == 0 ? 0 : Bytes{1} << logarithm;
    bits.resize((geometry_.region_size / unit_of(slot_size) + kBits - 1) / kBits);
    memory_.region().read_unchanging(bits_offset(region), std::as_writable_bytes(std::span(bits)));
    const bool is_free =
        std::all_of(bits.begin(), bits.end(), [](std::uint64_t one) { return one == 0; });
    if (!is_free) visit(region, slot_size, std::span<const std::uint64_t>(bits));
  }
}

void HeapMap::read(ByteRange area, Heap& heap) const {
  for_each_region(area,
                  [&](std::uint64_t region, Bytes slot_size, std::span<const std::uint64_t> bits) {
                    const Bytes begin = begin_of(region);
                    if (slot_size != 0) return heap.take_region(begin, slot_size, bits);
                    const std::uint64_t lines = bits.size() * kBits;
                    for (std::uint64_t first = next(bits, 0, true); first < lines;) {
                      const std::uint64_t end = next(bits, first, false);
                      heap.take_range({begin + first * kCacheLine, (end - first) * kCacheLine});
                      first = next(bits, end, true);
                    }
                  });
}

Bytes HeapMap::used_bytes(ByteRange area) const {
  Bytes used = 0;
  for_each_region(area, [&](std::uint64_t, Bytes slot_size, std::span<const std::uint64_t> bits) {
    for (const std::uint64_t word : bits) {
      used += static_cast<Bytes>(std::popcount(word)) * unit_of(slot_size);
    }
  });
  return used;
}

}  // namespace perdura::systems::mcas::hstore_cc
