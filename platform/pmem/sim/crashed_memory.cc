#include "platform/pmem/sim/crashed_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "platform/pmem/sim/region_memory.h"

namespace perdura::pmem::sim {

CrashedRegion::CrashedRegion(std::string name, Medium medium, Bytes size, const std::byte* memory,
                             PersistenceState::RegionId number, const ImageSpace& space)
    : name_(std::move(name)),
      medium_(medium),
      size_(size),
      mapping_(allocate_region(size)),
      base_(static_cast<std::byte*>(mapping_.get())),
      all_undecided_(size),
      undecided_(size),
      overwritten_lines_(size),
      is_saved_(size) {
  std::memcpy(base_, memory, size);
  for (const auto& line : space.lines()) {
    if (line.place.region != number) continue;
    std::memcpy(base_ + line.place.offset, line.bytes.data(), kCacheLine);
  }
  for (std::size_t i = 0; i < space.words().size(); ++i) {
    const PersistenceState::RegionAddress& place = space.words()[i].place;
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
  for (const Overwritten& word : overwritten_) {
    overwritten_lines_.remove(words_[word.place].offset / kCacheLine);
  }
  overwritten_.clear();
}

// Calls function(place) for each undecided word that has bytes in a range, and marks the words as
// decided.
template <class Function>
void CrashedRegion::each_undecided(Bytes offset, Bytes length, const Function& function) {
  const Bytes first = offset / kCacheLine * kCacheLine;
  const auto begin = std::lower_bound(words_.begin(), words_.end(), first,
                                      [](const Word& word, Bytes at) { return word.offset < at; });
  Bytes line = first / kCacheLine;
  bool left = false;  // an undecided word of the line
  const auto end_line = [&](Bytes next) {
    if (!left) undecided_.remove(line);
    left = false;
    line = next;
  };
  for (auto word = begin; word != words_.end(); ++word) {
    const Bytes of_line = word->offset / kCacheLine;
    if (of_line * kCacheLine >= offset + length) break;
    if (of_line != line) end_line(of_line);
    const auto place = static_cast<std::size_t>(word - words_.begin());
    if (decided_[place]) continue;
    if (word->offset + kWord <= offset || word->offset >= offset + length) {
      left = true;
      continue;
    }
    decided_[place] = true;
    function(place);
  }
  end_line(line);
}

void CrashedRegion::decide(Bytes offset, Bytes length) {
  each_undecided(offset, length, [this](std::size_t place) {
    const ImageSpace::WordBytes bytes = images_->word(space_, words_[place].number);
    save(words_[place].offset / kCacheLine);
    std::memcpy(base_ + words_[place].offset, bytes.data(), kWord);
  });
}

// Decides overwritten words whose old contents the reader may see. A CPU of the node sees the
// stores of CPUs at once.
void CrashedRegion::look_back(Bytes offset, Bytes length, Timeline& timeline,
                              Timeline::Writer reader) {
  std::erase_if(overwritten_, [&](const Overwritten& overwritten) {
    const Word& word = words_[overwritten.place];
    if (word.offset + kWord <= offset || word.offset >= offset + length) return false;
    const auto writer = timeline.writer_of(overwritten.change);
    if (!writer) return true;
    if (reader == Timeline::Writer::cpu && *writer == Timeline::Writer::cpu) return false;
    timeline.amend(overwritten.change, word.offset, images_->word(space_, word.number));
    return true;
  });
}

void CrashedRegion::save(Bytes line) {
  if (is_saved_.has(line)) return;
  is_saved_.add(line);
  Saved& saved = saved_.emplace_back();
  saved.line = line;
  std::memcpy(saved.bytes.data(), base_ + line * kCacheLine, kCacheLine);
}

void CrashedRegion::before_change(Bytes offset, Bytes length, const Timeline& timeline) {
  if (length == 0) return;
  if (undecided_.any(offset, length)) [[unlikely]] {
    // The words of which only a part is changed.
    const Bytes end = offset + length;
    if (offset % kWord != 0) decide(offset, 1);
    if (end % kWord != 0) decide(end - 1, 1);
    each_undecided(offset, length, [&](std::size_t place) {
      overwritten_.push_back({place, timeline.next_change()});
      overwritten_lines_.add(words_[place].offset / kCacheLine);
    });
  }
  const Bytes last = (offset + length - 1) / kCacheLine;
  for (Bytes line = offset / kCacheLine; line <= last; ++line) save(line);
}

// A change that the timeline does not remember is visible to every reader.
void CrashedRegion::after_change(const Timeline& timeline) {
  while (!overwritten_.empty() && overwritten_.back().change == timeline.next_change()) {
    overwritten_.pop_back();
  }
}

void CrashedRegion::restore() {
  for (const Saved& saved : saved_) {
    std::memcpy(base_ + saved.line * kCacheLine, saved.bytes.data(), kCacheLine);
    is_saved_.remove(saved.line);
  }
  saved_.clear();
}

}  // namespace perdura::pmem::sim
