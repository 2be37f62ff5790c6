// Draws lengths around the places at which something may be kept apart: the end of a word, which is
// what memory writes as a whole, of a cache line, of what allocators give at once, and of a page.
// Where a generated history has only a few usual lengths, what goes wrong at such an end alone
// never happens in it. How often it happened is counted, so that a run that never met it is found
// out.
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
// Longer than a word, so that what is stored can tell by whom, and does not end with a word.
inline constexpr Bytes kLeastDrawnLength = kWord + 1;

// A length from so far before one of these ends that what a system stores beside a value or record
// may reach over it, to one that goes over it itself.
inline Bytes length_around_a_boundary(pmem::Choices& choices) {
  constexpr std::array<Bytes, 4> kEnds{2 * kWord, kCacheLine, 4 * kCacheLine, kPageSize};
  constexpr Bytes kBefore = 48;
  const Bytes end = kEnds[choices.choose(kEnds.size())] + kWord;
  const Bytes back = choices.choose(kBefore + kWord);
  return end > back + kLeastDrawnLength ? end - back : kLeastDrawnLength;
}

// How often something of a length was stored that ends within a word, or goes over an end.
class BoundariesMet {
 public:
  // `what`: in the plural. Of an end beyond `longest` nothing is counted.
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
