#include "systems/erda/log.h"

#include <algorithm>

namespace perdura::systems::erda {

Log::Log(pmem::Region& pool, const PoolLayout& layout)
    : pool_(pool),
      layout_(layout),
      segment_units_(units(layout.shape().segment_bytes)),
      region_units_(units(layout.shape().region_bytes)),
      heads_(layout.shape().heads) {
  for (std::size_t h = 0; h < heads_.size(); ++h) {
    for (std::uint64_t link = 0; link < layout.shape().regions; ++link) {
      const std::uint64_t word =
          pool.load(layout.chain_word(static_cast<std::uint8_t>(h + 1), link));
      if (word == 0) break;
      heads_[h].chain.push_back(word - 1);
      ++regions_used_;
    }
  }
  for (std::size_t h = 0; h < heads_.size(); ++h) {
    if (heads_[h].chain.empty()) link_region(static_cast<std::uint8_t>(h + 1));
  }
}

// Figure 5: another region behind the last one of the head.
void Log::link_region(std::uint8_t head_id) {
  Head& head = heads_[head_id - 1];
  const std::uint64_t region = regions_used_++;
  const Bytes word = layout_.chain_word(head_id, head.chain.size());
  head.chain.push_back(region);
  pool_.store(word, region + 1);
  pool_.persist(word, kWord);
}

std::optional<Position> Log::reserve(std::uint8_t head_id, Bytes size) {
  Head& head = heads_[head_id - 1];
  const std::uint64_t length = round_up(size, kWord) / kWord;
  std::uint64_t start = head.next;
  // Section 3.3: an object that exceeds the segment begins the next one.
  if (start / segment_units_ != (start + length - 1) / segment_units_) {
    start = (start / segment_units_ + 1) * segment_units_;
  }
  if (start + length > kMaxUnits) return std::nullopt;
  if (start / region_units_ >= head.chain.size()) {
    if (regions_used_ == layout_.shape().regions) return std::nullopt;
    link_region(head_id);
  }
  head.next = static_cast<std::uint32_t>(start + length);
  return Position{static_cast<std::uint32_t>(start)};
}

Bytes Log::offset_of(std::uint8_t head_id, Position position) const {
  const Head& head = heads_[head_id - 1];
  return layout_.region_offset(head.chain[position.units / region_units_]) +
         Bytes{position.units % region_units_} * kWord;
}

void Log::resume(std::uint8_t head_id, Position last, std::optional<Position> end) {
  Head& head = heads_[head_id - 1];
  // How long an incomplete object was to be is not known, so its segment is given up.
  const std::uint32_t next = end ? end->units : segment_of(last).units + segment_units_;
  head.next = std::max(head.next, next);
}

Position Log::segment_of(Position position) const {
  return {position.units / segment_units_ * segment_units_};
}

}  // namespace perdura::systems::erda
