// Draws lengths around boundaries: the end of a word, which memory writes as a whole, of a cache
// line, of an allocator's unit, and of a page. If a generated history had only a few common
// lengths, it would never meet an error that occurs at such a boundary only. The lengths that meet
// one are counted, so that a run that never did is noticed.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "platform/base/units.h"
#include "platform/pmem/model/choices.h"

namespace perdura::services {

inline constexpr Bytes kPageSize = 4 * KiB;
// Longer than a word, so that the contents can identify the writer, and do not end with a word.
inline constexpr Bytes kLeastDrawnLength = kWord + 1;

// Draws a length from a boundary's neighborhood: from just short enough that a value or record
// reaches over the boundary only with what a system stores beside it, to one that reaches over it
// by itself.
inline Bytes length_around_a_boundary(pmem::Choices& choices) {
  constexpr std::array<Bytes, 4> kEnds{2 * kWord, kCacheLine, 4 * kCacheLine, kPageSize};
  constexpr Bytes kBefore = 48;
  const Bytes end = kEnds[choices.choose(kEnds.size())] + kWord;
  const Bytes back = choices.choose(kBefore + kWord);
  return end > back + kLeastDrawnLength ? end - back : kLeastDrawnLength;
}

// Counts the stored objects whose length ends within a word or reaches over a boundary.
class BoundariesMet {
 public:
  // `what` names the objects, in the plural. Boundaries beyond `longest` are not counted.
  BoundariesMet(std::string what, Bytes longest) : what_(std::move(what)), longest_(longest) {}

  void note(Bytes length) {
    within_word_ += length % kWord != 0 ? 1 : 0;
    over_line_ += length > kCacheLine ? 1 : 0;
    over_page_ += length > kPageSize ? 1 : 0;
  }
  void add_to(std::map<std::string, std::uint64_t, std::less<>>& events) const {
    if (longest_ > kWord) events[what_ + " that end within a word"] = within_word_;
    if (longest_ > kCacheLine) events[what_ + " over a line"] = over_line_;
    if (longest_ > kPageSize) events[what_ + " over a page"] = over_page_;
  }

 private:
  std::string what_;
  Bytes longest_;
  std::uint64_t within_word_ = 0;
  std::uint64_t over_line_ = 0;
  std::uint64_t over_page_ = 0;
};

}  // namespace perdura::services
