// Explores a program exhaustively: every crash point (a moment at which the power may fail), and
// every crash image that memory may hold afterwards.
//
// A crash point is given by the number of steps that each agent has done and the order in which
// agents changed and read the same lines (schedule.h). All possible crash points are tried, not
// only those of one run: an agent may be at any step, as long as no message is received before it
// is sent. The progress of messages, cache lines and fences is not part of a crash point: the model
// keeps the set of possible contents of each line, and all of these images are tried, too.
//
// Recovery reads every variable. A message that carries values and is complete in a receive buffer
// in persistent memory counts as if its values had been stored: its checksum is valid, so recovery
// can replay it. Receive buffers are never reused.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "platform/pmem/model/persistence_state.h"
#include "platform/pmem/model/program.h"
#include "platform/pmem/model/schedule.h"

namespace perdura::pmem {

// Where a variable is in memory, in words of 8 bytes.
struct VariableLayout {
  std::uint32_t words = 1;
  std::uint32_t first_word = 0;  // the word of its line at which it begins, 0 to 7
  bool same_line = false;  // directly after the previous variable, in the same line; it must fit
};

struct ProgramSetup {
  PersistenceModel model;
  Medium receive_buffers = Medium::dram;
  // One for each variable; empty: each variable has its own line.
  std::vector<VariableLayout> layout;
  std::vector<bool> other_ddio;  // by requester: its device's DDIO differs from `model.ddio`
  Rules rules;
};

inline constexpr int kTorn = -1;

// A crash point, and the values that recovery finds in one of its images.
struct Instant {
  std::vector<std::uint32_t> done;  // number of steps done, by agent
  std::vector<Event> events;        // in the order in which they happened
  bool requesters_ended = false;
  std::vector<int> values;  // by variable; kTorn if it is torn
};

struct Explored {
  std::uint64_t instants = 0;
  std::uint64_t images = 0;
  bool cut_short = false;  // the judge returned false before all were tried
  bool too_many = false;   // there were more images than `most_images`
  // The first step that can never proceed (a deadlock, or a message that is never sent), if any.
  struct Stuck {
    std::uint32_t agent = 0;
    std::uint32_t step = 0;
  };
  std::optional<Stuck> stuck;
};

class ProgramExplorer {
 public:
  ProgramExplorer(const Program& program, ProgramSetup setup);
  ProgramExplorer(const ProgramExplorer&) = delete;
  ProgramExplorer& operator=(const ProgramExplorer&) = delete;

  // Calls `judge` with each image of each crash point until it returns false. With
  // `Sampling::images`, only the smallest, the largest and that many random images of each crash
  // point are tried.
  struct Sampling {
    std::uint64_t images = 0;  // random images per crash point; 0: try all images
    std::uint64_t seed = 1;
    // Stops after this number of images of all crash points together; 0: no limit.
    std::uint64_t most_images = 0;
    // Called from time to time with the share of the work that is done, 0 to 1. An exception that
    // it throws ends the exploration.
    std::function<void(double share)> progress{};
  };
  Explored explore(const std::function<bool(const Instant&)>& judge, const Sampling& sampling);
  Explored explore(const std::function<bool(const Instant&)>& judge) { return explore(judge, {}); }

  // Describes as text, step by step, what happened up to the crash point, and where the variables'
  // data was.
  std::string describe(const Instant& instant);

 private:
  static constexpr Bytes kBufferSize = 8 * kCacheLine;
  struct Message {
    PersistenceState::Operation operation;
    const Step* step = nullptr;
    Bytes buffer = 0;
  };
  struct Run;

  Bytes buffer_of(Event event) const {
    return first_buffers_[event.agent] + event.step * kBufferSize;
  }
  void apply(Run& run, Event event) const;
  void place(Run& run, Event event) const;
  void recover(const Run& run, const std::vector<PersistenceState::Survivor>& image,
               std::vector<int>& values);
  bool try_instant(Instant& instant, const std::function<bool(const Instant&)>& judge,
                   const Sampling& sampling, Explored& explored);
  static bool is_carried(const Run& run, std::size_t variable);  // a SEND's message carries it
  std::span<const std::byte> bytes_of(Step::VariableChange change) const;

  const Program& program_;
  ProgramSetup setup_;
  std::uint64_t all_instants_ = 0;    // counted only if progress is reported
  std::vector<Bytes> offsets_;        // by variable
  std::vector<Bytes> first_buffers_;  // by agent: the buffer of its first step
  std::optional<Schedule> schedule_;
  std::vector<std::byte> initial_;
  std::vector<std::byte> memory_;  // variables, as recovery finds them
  std::vector<std::byte> buffers_;
};

}  // namespace perdura::pmem
