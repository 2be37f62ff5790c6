// A loss that the exploration of a fixed history (crash.h, sequences.h) has found, as data by which
// a later build can repeat it. What fails, when, and which image the failure leaves are choices in
// streams, as those of a generated run are (generated_run.h):
//
//   sequence     the number of the sequence of operations, if the history is one
//   fails        the kind of failure. For servers then how many fail alone, and which; 0 stands for
//                all. For a client its number; for a connection also the nodes whose connections
//                break
//   crash-point  the time of the failure, in picoseconds, as failing() takes it
//   image        the image that a failure of power leaves; 0 keeps the least
//
// From them the plan of the run is made (plan.h), and the explorer that has found the loss repeats
// it (explorer.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "explore/crash.h"
#include "explore/explanation/diagram.h"
#include "explore/sequences.h"
#include "explore/soak.h"
#include "platform/pmem/model/tape.h"
#include "platform/sim/kernel/profile.h"

namespace perdura::explore {

struct HistoryLoss {
  SoakCase where;          // it expects the weakest level that the loss breaks
  std::uint64_t seed = 1;  // CrashSetup::seed
  LosingRun run;
  services::GuaranteeLevel kept{};  // what the exploration found that the system keeps
  std::string text;                 // where the failure was, and what was lost, in whole lines

  services::CrashSetup setup() const;
};

// The streams that name what fails, when, and which image is left; for a sequence also its number.
pmem::Tape::Streams streams_of(const LosingRun& run);
// Sets from such streams what they name. Throws UsageError if they name no run.
void take_streams(const pmem::Tape::Streams& streams, LosingRun& run);

// The condition whose loss tells most, if the system is not durable.
services::Condition worst_lost(const CrashResult& result);
// The losses of explorations with these options: that of a condition that did not hold, and that of
// the sequence that kept less than expected.
HistoryLoss loss_of(const services::ServedSystem& system, const CrashOptions& options,
                    const CrashResult& result, services::Condition lost);
HistoryLoss loss_of(const services::ServedSystem& system, const SequenceOptions& options,
                    const SequenceResult& result);

// Repeats the run with the same image. Returns the text of what is lost; empty if nothing is. If a
// changed system keeps the level that was expected, but is not durable, that is its loss. Throws
// UsageError like explore_crashes() and history_of(), Undecided if the judge gave up.
std::string repeat(const HistoryLoss& loss, const sim::Profile& profile);

// Repeats the run to its end, and explains it. Nothing if it loses nothing: in an exploration only
// recovery follows a failure of the power of all servers, here the clients notice it, too.
std::optional<Diagram> explain(const HistoryLoss& loss, const sim::Profile& profile);

}  // namespace perdura::explore
