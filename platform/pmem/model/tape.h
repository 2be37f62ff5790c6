// A tape holds the choices of one run, in named streams, so that the run can be repeated and made
// simpler. A run that records draws each choice from a seed; a run that replays takes the choices
// from the tape. Where a tape has ended, a replay takes the first alternative, so programs that
// draw from a tape let 0 stand for the simplest alternative: no operation, no delay, no failure.
//
//   Tape tape(seed);                         // records
//   run(tape);                               // draws from tape.stream("clients") and others
//   Tape again = Tape::parse(tape.text());   // replays
//
// Each stream is drawn from by one part of the run. A change of one stream leaves the others alone,
// which is what makes a tape easy to shrink.
#pragma once

#include <cstdint>
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

  explicit Tape(std::uint64_t seed) : seed_(seed) {}
  explicit Tape(Streams recorded) : recorded_(std::move(recorded)) {}
  // Takes the recorded choices, but draws from the seed those that are kAnew and those behind the
  // end of a stream: a variation of an earlier run.
  Tape(Streams recorded, std::uint64_t seed) : seed_(seed), recorded_(std::move(recorded)) {}
  static constexpr std::uint64_t kAnew = ~std::uint64_t{0};

  // The stream of this name, which holds neither spaces nor semicolons. The reference stays valid
  // as long as the tape.
  Choices& stream(std::string_view name);

  // What has been drawn so far, by stream.
  Streams drawn() const;
  // The same as text: "clients 2 0 1; failures 0", without trailing zeros.
  std::string text() const;
  // Throws UsageError, which names the wrong word.
  static Tape parse(std::string_view text);

 private:
  class Stream final : public Choices {
   public:
    std::size_t choose(std::size_t n) override;

    std::optional<RandomChoices> random{};  // absent: 0 where nothing is recorded
    std::vector<std::uint64_t> recorded{};
    std::vector<std::uint64_t> drawn{};
  };

  std::optional<std::uint64_t> seed_;
  Streams recorded_;
  std::map<std::string, Stream, std::less<>> streams_;
};

std::string to_string(const Tape::Streams& streams);

}  // namespace perdura::pmem
