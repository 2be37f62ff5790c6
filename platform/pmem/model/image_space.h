// All images that a power failure may leave at one crash point, without listing them: the changes
// that may or may not survive, word by word, and the order between them: which must survive before
// which others.
//
// If B must not be durable before A, then a word of B survives only if A survives whole. So the
// sets of surviving words are the downward closed sets of a partial order. A program that recovers
// from the failure reads only some of the words, and its behavior depends on no others.
// PartialImage decides a word when it is read, and counts the images that agree with the decisions:
//
//   const ImageSpace space(state);
//   PartialImage image(space);
//   const auto bytes = image.word(0, [](ImageSpace::Bit) { return true; });
//   image.completions();   // images in which everything that was asked for survives
//
// An image is identified by the surviving words of changes. Words whose content is the same
// whatever survives are left out. Two images have the same bytes only where a word was changed
// several times in no certain order, or back to an earlier content.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "platform/pmem/model/persistence_state.h"

namespace perdura::pmem {

// Saturating counts of images: sums and products stop at the greatest number instead of wrapping.
inline constexpr std::uint64_t kCountless = std::numeric_limits<std::uint64_t>::max();
std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b);
std::uint64_t saturated_product(std::uint64_t a, std::uint64_t b);

class ImageSpace {
 public:
  using RegionAddress = PersistenceState::RegionAddress;
  using WordBytes = std::array<std::byte, kWord>;

  // A word of a change, which survives or not.
  struct Bit {
    std::uint32_t change = 0;
    std::uint8_t word = 0;  // one bit is set: that of the word within its line
    friend bool operator==(const Bit&, const Bit&) = default;
  };
  // The effect of a change on a word.
  struct Layer {
    Bit bit;
    std::uint8_t bytes = 0;  // the bytes of the word that it changes
    WordBytes content{};
  };
  // A choice of PersistenceState::image(): the alternative taken, and the number of alternatives.
  struct Choice {
    std::size_t taken = 0;
    std::size_t of = 0;
  };
  // A word of memory that may have several contents.
  struct Word {
    RegionAddress place;
    WordBytes base{};           // the content if only what cannot be lost survives
    std::vector<Layer> layers;  // in the order of the changes
  };

  // The images of a failure now. Throws std::logic_error if a rule of the model is disabled.
  explicit ImageSpace(PersistenceState& state);

  // Lines whose surviving content may differ from memory, in the order of addresses, with their
  // content if only what cannot be lost survives.
  const std::vector<PersistenceState::Survivor>& lines() const { return lines_; }
  // The words with several possible contents, in the order of addresses.
  std::span<const Word> words() const { return words_; }
  std::size_t changes() const { return changes_.size(); }

 private:
  friend class PartialImage;
  struct EffectiveChange {
    std::uint8_t words = 0;  // the words that make a difference
    // Changes that must survive whole if a word of this one does, and changes that are lost if a
    // word of this one is.
    std::vector<std::uint32_t> before;
    std::vector<std::uint32_t> after;
    std::uint32_t component = 0;  // changes of different components do not depend on each other
  };

  // A change about which image() asks, whether it makes a difference or not.
  struct Asked {
    std::uint8_t words = 0;             // the words of its line that it changes
    std::uint32_t change = kNone;       // its number in changes_; kNone if it makes no difference
    std::vector<std::uint32_t> before;  // others; it is asked about only if they survive whole
  };
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  void find_words(const PersistenceState& state,
                  const std::map<const void*, std::uint32_t>& number);
  class OrderedPairs;
  void leave_out(std::uint32_t number, OrderedPairs& pairs);
  void number_effective();
  void find_components();

  std::vector<PersistenceState::Survivor> lines_;
  std::vector<Word> words_;
  std::vector<EffectiveChange> changes_;
  std::vector<Asked> asked_;  // in the order of image()
  std::vector<std::vector<std::uint32_t>> components_;
  std::vector<std::uint64_t> images_of_component_;
};

// An image of which only some words are decided yet.
class PartialImage {
 public:
  using Decide = std::function<bool(ImageSpace::Bit)>;

  // `space` must outlive this.
  explicit PartialImage(const ImageSpace& space);

  // Drops all decisions.
  void reset();
  // Decides every word: the image becomes the one that PersistenceState::image() makes with these
  // choices. No word may have been decided before.
  void decide_all(Choices& image);
  // The content of words()[number]. Calls `decide` to find out whether a word of a change survives,
  // if that makes a difference and does not follow from earlier decisions.
  ImageSpace::WordBytes word(std::size_t number, const Decide& decide);
  // The number of images that agree with all decisions; kCountless if it is too large. A lower
  // bound if the order of changes is too complicated for counting.
  std::uint64_t completions() const;
  // The choices with which PersistenceState::image() makes the image that agrees with all decisions
  // and in which everything else that may survive does.
  std::vector<ImageSpace::Choice> choices() const;

 private:
  friend class ImageSpace;
  void keep(std::uint32_t change, std::uint8_t words);
  void lose(std::uint32_t change, std::uint8_t words);
  void touch(std::uint32_t change);
  std::uint8_t open(std::uint32_t change) const;
  std::uint64_t count(std::uint32_t component) const;

  class Counter;
  const ImageSpace& space_;
  std::vector<std::uint8_t> kept_;  // by change: its words that survive
  std::vector<std::uint8_t> lost_;
  std::vector<std::uint32_t> changed_;  // changes with decisions
};

}  // namespace perdura::pmem
