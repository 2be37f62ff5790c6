// A tape holds the choices of one run, in named streams, so that the run can be repeated and made
// simpler. A run that records draws each choice from a seed; a run that replays takes the choices
// from the tape. Where a tape has ended, a replay takes the first alternative, so programs that
// draw from a tape let 0 stand for the simplest alternative: no operation, no delay, no failure.
//
//   Tape tape(seed);                         // records
//   run(tape);                               // draws from tape.stream("clients") and others
//   Tape again = Tape::parse(tape.text());   // replays
//
// Each stream is used by one part of the run. A change of one stream leaves the others alone, which
// makes a tape easy to shrink. Instead of from a seed, the choices of a run that records may come
// from any Choices.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platform/pmem/model/choices.h"

namespace perdura::pmem {

class Tape {
 public:
  using Streams = std::map<std::string, std::vector<std::uint64_t>, std::less<>>;

  // Returns the choices for a stream, which must outlive the tape; null: the first alternatives.
  using Source = std::function<Choices*(std::string_view name)>;

  explicit Tape(std::uint64_t seed) : seed_(seed) {}
  // `source` provides the streams that were not recorded.
  explicit Tape(Streams recorded, Source source = {})
      : recorded_(std::move(recorded)), source_(std::move(source)) {}
  // Takes the recorded choices, but draws from the seed those that are kAnew and those after the
  // end of a stream: a variation of an earlier run.
  Tape(Streams recorded, std::uint64_t seed) : seed_(seed), recorded_(std::move(recorded)) {}
  static constexpr std::uint64_t kAnew = ~std::uint64_t{0};

  // The stream of this name, which must contain neither spaces nor semicolons. The reference is
  // valid as long as the tape. `rarity` applies to choices that are drawn from a seed
  // (SparseChoices).
  Choices& stream(std::string_view name, std::size_t rarity = 1);

  // The choices drawn so far, by stream.
  Streams drawn() const;
  // The drawn choices as text: "clients 2 0 1 0*12 3; failures 1", without trailing zeros; 0*12
  // stands for twelve of them.
  std::string text() const;
  // Parses such a text. Both throw UsageError, which names the wrong word.
  static Tape parse(std::string_view text) { return Tape(streams_in(text)); }
  static Streams streams_in(std::string_view text);

 private:
  class Stream final : public Choices {
   public:
    std::size_t choose(std::size_t n) override;

    Choices* source = nullptr;              // null: there is none
    std::optional<SparseChoices> random{};  // absent: 0 where nothing is recorded
    std::vector<std::uint64_t> recorded{};
    std::vector<std::uint64_t> drawn{};
  };

  std::optional<std::uint64_t> seed_;
  Streams recorded_;
  Source source_;
  std::map<std::string, Stream, std::less<>> streams_;
};

std::string to_string(const Tape::Streams& streams);

}  // namespace perdura::pmem
