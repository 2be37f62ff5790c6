// A generated scenario, and a run of it (scenario_run.h). Everything that may go either way is
// drawn from a tape: what the clients do, when threads stall, which clients die, when and how the
// servers fail, and which image each power failure leaves.
//
// The tape has a stream for each thing that may be left out of a run. A stream whose first choice
// is 0 leaves its thing out, and the choices of all other streams stay as they are:
//
//   store      the servers and what they hold (services::Service::generated_scenario())
//   workers    how many workers each server has (services/kv)
//   lengths    whether what is stored has lengths around boundaries (services/boundaries.h)
//   world      how large a region is, and how many copies it has (services/memory)
//   promoted   which copy is promoted for the inspection (services/memory)
//   moves      which copies are promoted after failures, so that the application goes on with them
//   patience   how long, and how often, a copy may fail to answer before it is given up
//   filling    whether the store is almost full from the beginning, and clients get what fills it
//   fences     whether the fences of CPUs take long
//   bus        whether devices read memory so slowly that READs are torn
//   client-N   what client N does
//   stall-N    a thread that stands still: which one, when and for how long
//   death-N    a client's process that dies or connection that breaks: which one, and when
//   failures   how many failures there may be beyond the usual three
//   failure-N  a failure of the servers: its kind and its time. The time is relative to the
//              beginning or end of an operation, so it keeps its place if other operations are left
//              out. In at least half of the cases that operation is drawn, with equal probability,
//              from all those that clients plan (services::CrashScenario::planned_calls())
//   apart-N    whether only one server fails, which one, and for how long it is away
//   image-N    what that failure of power leaves of persistent memory; 0 keeps the most
//
//   drawn       which of the next two are drawn, as a set of bits
//   messages    by how much each message, answer and receive completion is late
//   placements  by how much each placement in the servers' memory is late
//   paused      which of the next two are drawn, as a set of bits
//   pauses      for how long a thread stands still after each operation that it posts
//   yields      for how long it stands still wherever a task lets the others of its thread run
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "explore/scenario_run.h"
#include "platform/pmem/model/tape.h"
#include "services/service.h"

namespace perdura::explore {

class GeneratedRun {
 public:
  // `profile` and `tape` must outlive this.
  GeneratedRun(const services::ServedSystem& system, const sim::Profile& profile,
               const services::CrashSetup& setup, pmem::Tape& tape);
  GeneratedRun(const GeneratedRun&) = delete;
  GeneratedRun& operator=(const GeneratedRun&) = delete;

  ScenarioRun& run() { return run_; }
  const services::CrashScenario& scenario() const { return *scenario_; }

  // After the run: the choices of the same run, with each server failure re-expressed relative to
  // the beginning or end of an operation before it. So shrinking can drop earlier operations, or
  // change their times, without moving the failure.
  pmem::Tape::Streams anchored() const;
  // The choices of a run whose power failure leaves the image that ScenarioRun::try_images() has
  // found to fail. No client does anything after it, and there is no further failure.
  pmem::Tape::Streams with_image(const ScenarioRun::ImagesTried& tried) const;

 private:
  // The tape's simplest image is the one that keeps the most, so that the simplest run that fails
  // loses only what it has to.
  class MostIsSimplest final : public pmem::Choices {
   public:
    explicit MostIsSimplest(pmem::Choices& tape) : tape_(tape) {}
    std::size_t choose(std::size_t n) override { return n - 1 - tape_.choose(n); }

   private:
    pmem::Choices& tape_;
  };

  pmem::Tape& tape_;
  const sim::Profile profile_;
  std::vector<PlannedFailure> failures_;  // until they are part of the run's plan
  std::deque<MostIsSimplest> images_{};   // one for each failure of power so far
  std::unique_ptr<services::CrashScenario> scenario_;
  ScenarioRun run_;
};

}  // namespace perdura::explore
