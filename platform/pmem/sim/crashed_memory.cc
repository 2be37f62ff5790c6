#include "platform/pmem/sim/crashed_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "platform/pmem/sim/region_memory.h"

namespace perdura::pmem::sim {

CrashedRegion::CrashedRegion(std::string name, Bytes size, const std::byte* memory,
                             PersistenceState::RegionId number, const ImageSpace& space)
    : name_(std::move(name)),
      size_(size),
      mapping_(allocate_region(name_, size)),
      base_(static_cast<std::byte*>(mapping_.get())),
      all_undecided_(size),
      undecided_(size),
      is_saved_(size) {
  std::memcpy(base_, memory, size);
  for (const auto& line : space.lines()) {
    if (line.place.region != number) continue;
    std::memcpy(base_ + line.place.offset, line.bytes.data(), kCacheLine);
  }
  for (std::size_t i = 0; i < space.words().size(); ++i) {
    const PersistenceState::Place& place = space.words()[i].place;
    if (place.region != number) continue;
    words_.push_back({i, place.offset});
    all_undecided_.add(place.offset / kCacheLine);
  }
}

void CrashedRegion::begin(LazyImages& images, std::size_t space) {
  images_ = &images;
  space_ = space;
  undecided_ = all_undecided_;
  decided_.assign(words_.size(), false);
}

void CrashedRegion::decide(Bytes offset, Bytes length) {
  const Bytes first = offset / kCacheLine * kCacheLine;
  const auto begin = std::lower_bound(words_.begin(), words_.end(), first,
                                      [](const Word& word, Bytes at) { return word.offset < at; });
  for (auto word = begin; word != words_.end() && word->offset < offset + length; ++word) {
    const auto place = static_cast<std::size_t>(word - words_.begin());
    if (word->offset + kWord <= offset || decided_[place]) continue;
    const ImageSpace::WordBytes bytes = images_->word(space_, word->number);
    decided_[place] = true;
    const Bytes line = word->offset / kCacheLine;
    save(line);
    std::memcpy(base_ + word->offset, bytes.data(), kWord);
    // Later reads of the line need not look again if no other word of it is left.
    bool left = false;
    for (auto other = begin; other != words_.end() && other->offset / kCacheLine <= line; ++other) {
      left = left || (other->offset / kCacheLine == line &&
                      !decided_[static_cast<std::size_t>(other - words_.begin())]);
    }
    if (!left) undecided_.remove(line);
  }
}

void CrashedRegion::save(Bytes line) {
  if (is_saved_.has(line)) return;
  is_saved_.add(line);
  Saved& saved = saved_.emplace_back();
  saved.line = line;
  std::memcpy(saved.bytes.data(), base_ + line * kCacheLine, kCacheLine);
}

void CrashedRegion::before_change(Bytes offset, Bytes length) {
  if (length == 0) return;
  before_read(offset, length);
  const Bytes last = (offset + length - 1) / kCacheLine;
  for (Bytes line = offset / kCacheLine; line <= last; ++line) save(line);
}

void CrashedRegion::restore() {
  for (const Saved& saved : saved_) {
    std::memcpy(base_ + saved.line * kCacheLine, saved.bytes.data(), kCacheLine);
    is_saved_.remove(saved.line);
  }
  saved_.clear();
}

}  // namespace perdura::pmem::sim
