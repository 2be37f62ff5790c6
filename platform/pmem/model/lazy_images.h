// The images of a power failure, with a single run of a program for all images that the program
// cannot distinguish.
//
// A program that recovers asks for the words that it reads; only then are their contents decided.
// All images that agree on these words are covered by the run: the program would do the same with
// each of them. The idea is that of Jaaru (Gorjiara, Xu, Demsky, ASPLOS 2021), which decides a load
// when it is executed, over the images of image_space.h.
//
//   LazyImages images(std::move(spaces), seed);
//   while (images.next()) {
//     recover(...);   // calls images.word(space, number) before it reads or changes that word
//     images.end();   // images.covered() is the number of images that this run covers
//   }
//
// The first run has the image in which the least survives, the second the one in which the most
// does; then come random ones, none of which has been covered. The program must be deterministic:
// with the same words it asks for the same next one.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "platform/pmem/model/choices.h"
#include "platform/pmem/model/image_space.h"

namespace perdura::pmem {

class LazyImages {
 public:
  // The survival of the changes that a run asked about, in the order in which it asked.
  using Decisions = std::vector<bool>;

  // `spaces`: one for each machine whose power fails; a failure leaves an image of each.
  LazyImages(std::vector<ImageSpace> spaces, std::uint64_t seed);
  LazyImages(const LazyImages&) = delete;
  LazyImages& operator=(const LazyImages&) = delete;

  // Begins a run with images that no run has covered; returns false if there are none.
  bool next();
  // Repeats a run with these decisions; end() then covers nothing new.
  void repeat(const Decisions& decisions);
  // Begins a run with the image that these choices make, those of all spaces one after the other
  // (choices()); end() then covers nothing new.
  void take(Choices& image);
  // The content of word `number` of a space in this run.
  ImageSpace::WordBytes word(std::size_t space, std::size_t number);
  // Throws PlatformError if the run did not ask the same question as an earlier one with the same
  // answers.
  void end();

  const std::vector<ImageSpace>& spaces() const { return spaces_; }
  // The number of all images of the failure, of those that the last run covers, and of those that
  // all runs together do. kCountless stands for all greater numbers.
  std::uint64_t images() const { return images_; }
  std::uint64_t covered() const { return covered_; }
  std::uint64_t covered_by_all() const { return covered_by_all_; }
  // True if each image was covered.
  bool exhausted() const { return exhausted_; }
  std::uint64_t runs() const { return runs_; }
  const Decisions& decisions() const { return decisions_; }
  // The choices that make one of the images that the last run covers (PartialImage::choices()).
  std::vector<ImageSpace::Choice> choices(std::size_t space) const {
    return partial_[space].choices();
  }

 private:
  enum class Order : std::uint8_t { least, most, random, repeat };
  // A point at which a run has asked whether a word of a change survives.
  struct Question {
    std::uint32_t space = 0;
    ImageSpace::Bit bit;
    // By answer, no and yes: the next question, and whether all runs with the answer are covered.
    std::uint32_t next[2] = {0, 0};
    bool done[2] = {false, false};
  };
  // The intended survival of a change in a random run, so that torn changes are not the rule.
  enum class Fate : std::uint8_t { open, lost, torn, whole };

  void begin(Order order);
  bool answer(std::uint32_t space, ImageSpace::Bit bit);
  bool wish(std::uint32_t space, ImageSpace::Bit bit);

  std::vector<ImageSpace> spaces_;
  std::vector<PartialImage> partial_;
  std::deque<Question> questions_;  // a tree; the first one is its root
  RandomChoices random_;
  std::vector<std::vector<Fate>> fates_;  // the fates in this run, by space and change
  Order order_ = Order::least;
  std::vector<std::uint32_t> path_;  // the questions of this run
  Decisions decisions_;
  Decisions to_repeat_;
  std::uint64_t images_ = 1;
  std::uint64_t covered_ = 0;
  std::uint64_t covered_by_all_ = 0;
  std::uint64_t runs_ = 0;
  bool exhausted_ = false;
  bool differs_ = false;  // this run differs from an earlier one with the same answers
};

}  // namespace perdura::pmem
