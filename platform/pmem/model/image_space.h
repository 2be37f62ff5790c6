// All images that a power failure may leave at one moment, without listing them: which changes may
// or may not survive, word by word, and which of them must survive before which others.
//
// If B must not be durable before A, then a word of B survives only if A survives whole. So the
// sets of surviving words are the downward closed sets of a partial order. A program that recovers
// from the failure reads only some of the words; what it does depends on no others. PartialImage
// decides a word when it is read, and counts the images that agree with what was decided:
//
//   const ImageSpace space(state);
//   PartialImage image(space);
//   const auto bytes = image.word(0, [](ImageSpace::Bit) { return true; });
//   image.completions();   // images in which everything that was asked for survives
//
// An image is told apart by the words of changes that survive. Words are left out whose content is
// the same whatever survives. Two images have the same bytes only where a word was changed several
// times in no certain order, or back to what it had been.
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

// Numbers of images: sums and products that end at the greatest number instead of wrapping around.
inline constexpr std::uint64_t kCountless = std::numeric_limits<std::uint64_t>::max();
std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b);
std::uint64_t saturated_product(std::uint64_t a, std::uint64_t b);

class ImageSpace {
 public:
  using Place = PersistenceState::Place;
  using WordBytes = std::array<std::byte, kWord>;

  // A word of a change, which survives or not.
  struct Bit {
    std::uint32_t change = 0;
    std::uint8_t word = 0;  // one bit is set: that of the word within its line
    friend bool operator==(const Bit&, const Bit&) = default;
  };
  // What a change makes of a word.
  struct Layer {
    Bit bit;
    std::uint8_t bytes = 0;  // of the word, those that it changes
    WordBytes content{};
  };
  // A choice of PersistenceState::image(), and among how many alternatives.
  struct Choice {
    std::size_t taken = 0;
    std::size_t of = 0;
  };
  // A word of memory that may have several contents.
  struct Word {
    Place place;
    WordBytes base{};           // if nothing survives that may be lost
    std::vector<Layer> layers;  // in the order of the changes
  };

  // The images of a failure now. Throws std::logic_error if a rule of the model is disabled.
  explicit ImageSpace(PersistenceState& state);

  // Lines whose surviving content may differ from memory, in the order of addresses, as they are
  // if nothing survives that may be lost.
  const std::vector<PersistenceState::Survivor>& lines() const { return lines_; }
  // In the order of addresses.
  std::span<const Word> words() const { return words_; }
  std::size_t changes() const { return changes_.size(); }

 private:
  friend class PartialImage;
  struct Change {
    std::uint8_t words = 0;  // those that make a difference
    // Changes that must survive whole if a word of this one does, and those that are lost if a word
    // of this one is.
    std::vector<std::uint32_t> before;
    std::vector<std::uint32_t> after;
    std::uint32_t component = 0;  // changes of different ones do not depend on each other
  };

  // Whatever image() asks about, whether it makes a difference or not.
  struct Asked {
    std::uint8_t words = 0;             // of its line, those that it changes
    std::uint32_t change = kNone;       // its number in changes_; kNone if it makes no difference
    std::vector<std::uint32_t> before;  // others that must survive whole, or it is not asked about
  };
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  void find_words(const PersistenceState& state,
                  const std::map<const void*, std::uint32_t>& number);
  void leave_out_ineffective();
  void find_components();

  std::vector<PersistenceState::Survivor> lines_;
  std::vector<Word> words_;
  std::vector<Change> changes_;
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

  // Nothing is decided any more.
  void reset();
  // The content of words()[number]. Asks `decide` whether a word of a change survives if that makes
  // a difference and does not follow from earlier decisions.
  ImageSpace::WordBytes word(std::size_t number, const Decide& decide);
  // The number of images that agree with all decisions; kCountless if there are more than can be
  // counted. If the order of changes is too complicated to count them, a lower bound.
  std::uint64_t completions() const;
  // The choices with which PersistenceState::image() makes the image in which what was decided is
  // so, and all else survives that may.
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
  std::vector<std::uint8_t> kept_;  // of each change, words that survive
  std::vector<std::uint8_t> lost_;
  std::vector<std::uint32_t> changed_;  // changes about which something is decided
};

}  // namespace perdura::pmem
