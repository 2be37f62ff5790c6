// Finds the value that a failure has undone, or that should not be there: who was told of it, which
// lines held it, and who relied on them before they were durable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "explore/explanation/recording.h"
#include "services/crash.h"

namespace perdura::explore {

// A run as its scenario saw it.
struct ExplainedRun {
  std::string title;       // which system, on what
  std::string conclusion;  // why the run is not as it should be
  std::string clock{};     // how its times differ from those told before; empty: they do not
  NodeId servers = 1;      // the clients' nodes follow, then the inspector's
  std::uint32_t clients = 0;
  std::vector<services::CrashCall> calls;
  std::optional<std::uint64_t> object{};  // the one that the conclusion is about; absent: all
  std::vector<Time> failures;             // when servers failed, in order
  // Events of nodes and connections, the failures among them.
  std::vector<std::pair<Time, std::string>> events;

  NodeId node_of(std::uint32_t client) const { return servers + client; }
};

// The last line of a judge's trace, without what leads to it.
std::string conclusion_of(const std::string& trace);

struct LostValue {
  // All of these point into the run.
  const Time* failure = nullptr;                   // the one that undid it; null if none did
  const services::CrashCall* found = nullptr;      // the first call that shows it
  std::vector<const services::CrashCall*> told{};  // calls that had told the value, in order
  const services::CrashCall* written = nullptr;    // the call that wrote it
  std::vector<Recording::Lost> lost{};             // the changes that the failure undid
  std::vector<bool> holds{};                       // whether each of them holds the value
  std::size_t others = 0;  // changes that were lost, too, and have nothing to do with it
};

LostValue find_lost_value(const Recording& recording, const ExplainedRun& run);

// Changes that were lost in the same way: neighboring lines of one message, or of one thread.
struct LostLines {
  Recording::Range range;
  Bytes bytes = 0;                     // the number of bytes that are lost
  Time written{};                      // when the last of them was written
  std::vector<std::size_t> changes{};  // indices in the recording
  pmem::LostIn where{};
  pmem::Rule rule{};
  bool holds = false;  // true if any of them holds a part of the value
};
// Those that hold the value come first.
std::vector<LostLines> lost_lines(const Recording& recording, const LostValue& value);

// The first step that relied on a lost change as if it were durable.
struct Reliance {
  enum class Kind : std::uint8_t {
    looked,     // a one-sided operation saw it
    answered,   // a server sent a message to the client that was told the value
    completed,  // the client got the completion of the operation that wrote it
  };
  Kind kind{};
  std::size_t message = 0;  // the message by which it did, as an index
  std::size_t change = 0;   // the change that was not durable, as an index
  Time at{};
  const services::CrashCall* call = nullptr;  // the call that made this step
};
std::optional<Reliance> find_reliance(const Recording& recording, const ExplainedRun& run,
                                      const LostValue& value);

}  // namespace perdura::explore
