// The persistent memory of a simulated machine after a power failure. Many simulations recover from
// it, one after the other, without repeating the run before the failure.
//
// A word with several possible contents is decided when a simulation first reads it, or changes a
// part of it (pmem/model/lazy_images.h). A word that is overwritten before it is read is decided
// only if a reader may still see the overwritten contents (timeline.h). All simulations use the
// same memory: restore() puts back the lines that the last one has changed.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "platform/pmem/model/lazy_images.h"
#include "platform/pmem/region.h"
#include "platform/pmem/sim/timeline.h"

namespace perdura::pmem::sim {

class CrashedRegion {
 public:
  // A copy of `memory`, whose lines are those of the space. `number`: the region's id in the model.
  CrashedRegion(std::string name, Medium medium, Bytes size, const std::byte* memory,
                PersistenceState::RegionId number, const ImageSpace& space);
  CrashedRegion(const CrashedRegion&) = delete;
  CrashedRegion& operator=(const CrashedRegion&) = delete;

  const std::string& name() const { return name_; }
  Medium medium() const { return medium_; }
  Bytes size() const { return size_; }
  std::byte* base() const { return base_; }
  const std::shared_ptr<void>& mapping() const { return mapping_; }

  // Begins a simulation; `images` decides its words, which are those of its space `space`.
  void begin(LazyImages& images, std::size_t space);
  // Must be called before the simulation reads a range; before_change() and after_change(), before
  // and after it changes one. `timeline` is the region's; it has forgotten what no reader can see.
  void before_read(Bytes offset, Bytes length, Timeline& timeline, Timeline::Writer reader) {
    if (undecided_.any(offset, length)) [[unlikely]]
      decide(offset, length);
    if (overwritten_lines_.any(offset, length)) [[unlikely]]
      look_back(offset, length, timeline, reader);
  }
  void before_change(Bytes offset, Bytes length, const Timeline& timeline);
  void after_change(const Timeline& timeline);
  // Decides all words, as if they were read.
  void decide_all() { decide(0, size_); }
  // Ends the simulation.
  void restore();

 private:
  struct Overwritten {
    std::size_t place = 0;     // its index in words_
    std::uint64_t change = 0;  // its number in the timeline
  };
  struct Saved {
    Bytes line = 0;
    std::array<std::byte, kCacheLine> bytes{};
  };
  // A set of lines.
  class Lines {
   public:
    explicit Lines(Bytes size) : bits_(size / kCacheLine / 64 + 1) {}
    bool has(Bytes line) const { return (bits_[line / 64] >> line % 64 & 1) != 0; }
    // True if it has a line of a range of bytes.
    bool any(Bytes offset, Bytes length) const {
      if (length == 0) return false;
      const Bytes last = (offset + length - 1) / kCacheLine;
      for (Bytes line = offset / kCacheLine; line <= last; ++line) {
        if (has(line)) return true;
      }
      return false;
    }
    void add(Bytes line) { bits_[line / 64] |= std::uint64_t{1} << line % 64; }
    void remove(Bytes line) { bits_[line / 64] &= ~(std::uint64_t{1} << line % 64); }

   private:
    std::vector<std::uint64_t> bits_;
  };

  template <class Function>
  void each_undecided(Bytes offset, Bytes length, const Function& function);
  void decide(Bytes offset, Bytes length);
  void look_back(Bytes offset, Bytes length, Timeline& timeline, Timeline::Writer reader);
  void save(Bytes line);

  std::string name_;
  Medium medium_;
  Bytes size_;
  std::shared_ptr<void> mapping_;
  std::byte* base_;
  // Numbers and offsets of the space's words that are in this region, in the order of addresses.
  struct Word {
    std::size_t number = 0;
    Bytes offset = 0;
  };
  std::vector<Word> words_;
  Lines all_undecided_;
  // The state of the current simulation.
  LazyImages* images_ = nullptr;
  std::size_t space_ = 0;
  Lines undecided_;
  std::vector<bool> decided_;             // by place in words_; true for overwritten ones, too
  std::vector<Overwritten> overwritten_;  // undecided words whose old contents may still be seen
  Lines overwritten_lines_;               // lines with such words
  Lines is_saved_;
  std::vector<Saved> saved_;
};

// All persistent regions of a machine.
struct CrashedMemory {
  std::deque<CrashedRegion> regions;

  void begin(LazyImages& images, std::size_t space) {
    for (CrashedRegion& region : regions) region.begin(images, space);
  }
  void restore() {
    for (CrashedRegion& region : regions) region.restore();
  }
};

}  // namespace perdura::pmem::sim
