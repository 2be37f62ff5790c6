#include "systems/continuity/layout.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace perdura::systems::continuity {

namespace {

template <class T>
T object_at(std::span<const std::byte> bytes, Bytes offset) {
  T object;
  std::memcpy(&object, bytes.data() + offset, sizeof object);
  return object;
}

// Searches the slots whose bits are set, and computes the XOR of their terms.
struct Scan {
  std::uint64_t sum = 0;
  std::optional<Slot> found;

  template <class OffsetOf>
  void run(std::span<const std::byte> bytes, Indicator bits, const Slot& key, OffsetOf offset_of) {
    for (; bits != 0; bits &= bits - 1) {
      const auto number = static_cast<SlotNumber>(std::countr_zero(bits));
      const auto slot = object_at<Slot>(bytes, offset_of(number));
      sum ^= check_term(number, slot);
      if (!found && slot.same_key(key)) found = slot;
    }
  }
};

}  // namespace

Table Geometry::table(std::uint32_t level) const {
  Table table{kTablesOffset, pairs, 0, sbuckets, {}, {}};
  for (std::uint32_t i = 0;; ++i) {
    table.groups = std::min(table.pairs * added_percent / 100, kMaxGroups);
    if (i == level) break;
    table.offset += table.size();
    table.pairs *= 2;
    if (resized_sbuckets != 0) table.sbuckets = resized_sbuckets;
  }
  table.buckets = Divisor(2 * table.pairs);
  for (const bool odd : {false, true}) {
    table.home_bits[odd] = table.segment_bits(odd) | table.group_bits();
  }
  return table;
}

Bytes Geometry::size() const {
  const Table last = table(resizes);
  return last.offset + last.size();
}

Search search_segment(std::span<const std::byte> segment, const Table& table, bool odd,
                      const Slot& key) {
  const auto header = segment.subspan(Table::header_in_segment(odd), kHeaderSize);
  Search search;
  search.indicator = object_at<Indicator>(header, kIndicatorOffset);
  Scan scan{check_term(search.indicator), std::nullopt};
  scan.run(segment, search.indicator & table.segment_bits(odd), key,
           [odd](SlotNumber slot) { return Table::offset_in_segment(odd, slot); });
  for (const bool each : {false, true}) {
    search.segment_checks[each] = object_at<std::uint64_t>(header, check_offset(each));
  }
  search.torn = scan.sum != search.segment_checks[odd];
  if (!search.torn) search.found = scan.found;
  return search;
}

Search search_group(std::span<const std::byte> group, const Table& table, const Search& in_segment,
                    const Slot& key) {
  Search search = in_segment;
  Scan scan{check_term(in_segment.segment_checks), std::nullopt};
  scan.run(group, in_segment.indicator & table.group_bits(), key,
           [&table](SlotNumber slot) { return table.offset_in_group(slot); });
  search.torn = scan.sum != object_at<std::uint64_t>(group, 0);
  if (!search.torn) search.found = scan.found;
  return search;
}

}  // namespace perdura::systems::continuity
