#include "systems/erda/log.h"

#include <algorithm>

namespace perdura::systems::erda {

Log::Log(pmem::Region& pool, const PoolLayout& layout, std::uint8_t head, std::uint32_t chain)
    : pool_(&pool),
      layout_(&layout),
      head_(head),
      chain_(chain),
      segment_units_(units(layout.shape().segment_bytes)),
      region_units_(units(layout.shape().region_bytes)) {
  for (std::uint64_t i = 0; i < layout.shape().regions; ++i) {
    const auto link = Link::of(pool.load(layout.link_word(head, chain, i)));
    if (!link) break;
    links_.push_back(*link);
  }
}

std::optional<Position> Log::position_from(Position from, Bytes size) const {
  const std::uint64_t length = round_up(size, kWord) / kWord;
  std::uint64_t start = from.units;
  // Section 3.3: an object that would exceed the segment begins the next one.
  if (start / segment_units_ != (start + length - 1) / segment_units_) {
    start = (start / segment_units_ + 1) * segment_units_;
  }
  if (start + length > kMaxUnits || start / region_units_ >= layout_->shape().regions) {
    return std::nullopt;
  }
  return Position{static_cast<std::uint32_t>(start)};
}

void Log::take(Position position, Bytes size) {
  note(position, size);
  next_ = position.units + units(round_up(size, kWord));
}

void Log::link(Link link) {
  const Bytes word = layout_->link_word(head_, chain_, links_.size());
  links_.push_back(link);
  pool_->store(word, link.word());
  pool_->persist(word, kWord);
}

std::vector<Link> Log::unlink_all() {
  // From the last link to the first, so that a crash leaves a contiguous chain.
  for (std::uint64_t i = links_.size(); i-- > 0;) {
    const Bytes word = layout_->link_word(head_, chain_, i);
    pool_->store(word, links_[i].unlinked());
    pool_->persist(word, kWord);
  }
  objects_ = {};
  next_ = 1;
  held_ = 0;
  return std::exchange(links_, {});
}

void Log::resume(Position last, std::optional<Position> end, std::vector<std::uint32_t> objects,
                 Bytes largest) {
  // The intended length of an incomplete object is unknown, so the rest of its segment is given up.
  const Position next = end ? *end : segment_after(last);
  next_ = std::max(next_, next.units);
  objects_ = std::move(objects);
  // No object is larger than its distance to the next one.
  held_ = 0;
  for (std::size_t i = 0; i < objects_.size(); ++i) {
    const std::uint32_t behind = i + 1 < objects_.size() ? objects_[i + 1] : next.units;
    held_ += std::min<Bytes>(largest, Bytes{behind - objects_[i]} * kWord);
  }
}

}  // namespace perdura::systems::erda
