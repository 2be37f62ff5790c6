// Explores a program: every moment at which the power may fail, and every image that it may leave.
//
// A moment is how far each agent has come, and in which order they changed and looked at the same
// lines (schedule.h); all that are possible are tried, not those of one run: an agent may stand at
// any step, as long as nobody has received what has not been sent. How far the messages, cache
// lines and fences have come is not part of the moment: the model knows what may be where, and all
// of it is tried, too.
//
// Recovery reads every variable. A message that carries values and stands whole in a receive buffer
// in persistent memory counts as if its values had been stored: its checksum holds, so recovery can
// replay it. Buffers are never handed back.
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

// Where a variable is, in words of 8 bytes.
struct VariableLayout {
  std::uint32_t words = 1;
  std::uint32_t first_word = 0;  // of its first line, 0 to 7
  bool same_line = false;        // as the variable before; there must be room
};

struct ProgramSetup {
  PersistenceModel model;
  Medium receive_buffers = Medium::dram;
  std::vector<VariableLayout> layout;  // as many as there are variables, or none: a line for each
  std::vector<bool> other_ddio;        // of requesters whose device is unlike the machine's
  Rules rules;
};

inline constexpr int kTorn = -1;

// A moment, and what recovery finds.
struct Instant {
  std::vector<std::uint32_t> done;  // steps, of each agent
  std::vector<Event> events;        // in the order in which they happened
  bool requesters_ended = false;
  std::vector<int> values;  // of each variable, or kTorn
};

struct Explored {
  std::uint64_t instants = 0;
  std::uint64_t images = 0;
  bool cut_short = false;  // the judge was satisfied before all were tried
  bool too_many = false;   // or there were more than `most_images`
  // The step that waits for what never comes, if there is one.
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

  // Shows each image of each moment to `judge`, until it returns false; or, of each moment, the
  // images with least and most and so many random ones.
  struct Sampling {
    std::uint64_t images = 0;  // 0: all
    std::uint64_t seed = 1;
    std::uint64_t most_images = 0;  // of all moments together: then it is cut short; 0 is no limit
    // Called now and then with the share that is done, 0 to 1; what it throws ends the exploration.
    std::function<void(double share)> progress{};
  };
  Explored explore(const std::function<bool(const Instant&)>& judge, const Sampling& sampling);
  Explored explore(const std::function<bool(const Instant&)>& judge) { return explore(judge, {}); }

  // What happened up to the instant, step by step, and where the variables were; for people.
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
  static bool is_carried(const Run& run, std::size_t variable);  // by a SEND
  std::span<const std::byte> bytes_of(Step::Change change) const;

  const Program& program_;
  ProgramSetup setup_;
  std::uint64_t all_instants_ = 0;    // counted only for who wants to know the share that is done
  std::vector<Bytes> offsets_;        // of the variables
  std::vector<Bytes> first_buffers_;  // of each agent's steps
  std::optional<Schedule> schedule_;
  std::vector<std::byte> initial_;
  std::vector<std::byte> memory_;  // variables, as recovery finds them
  std::vector<std::byte> buffers_;
};

}  // namespace perdura::pmem
