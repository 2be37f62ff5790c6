#include "platform/litmus/explore.h"

#include <string>

#include "platform/pmem/model/choices.h"
#include "platform/sim/sim_platform.h"
#include "platform/strategies/exhaustive.h"

namespace perdura::litmus {

namespace {

RunOptions relaxed_by(sim::SimPlatform& platform, pmem::Choices& choices) {
  RunOptions options;
  options.suspend_between_steps = true;
  options.before_start = [&platform, &choices] { platform.relax(choices); };
  return options;
}

void add(const Results& more, Results& results) {
  for (const auto& [result, times] : more) results[result] += times;
}

}  // namespace

Explored explore(const Litmus& litmus, const sim::Profile& profile) {
  Explored explored;
  strategies::Exhaustive all;
  while (all.next()) {
    sim::SimPlatform platform(profile, litmus.nodes);
    Run run(litmus, platform, relaxed_by(platform, all));
    all.watch([&run, &platform] {
      std::string state;
      run.append_state(state);
      platform.append_state(state);
      return state;
    });
    try {
      add(run.finish(), explored.results);
    } catch (const strategies::Exhaustive::StateIsKnown&) {
    }
  }
  explored.runs = all.runs();
  explored.states = all.states();
  return explored;
}

Results sample(const Litmus& litmus, const sim::Profile& profile, std::uint64_t times,
               std::uint64_t seed) {
  Results results;
  pmem::RandomChoices choices(seed);
  for (std::uint64_t i = 0; i < times; ++i) {
    sim::SimPlatform platform(profile, litmus.nodes);
    add(Run(litmus, platform, relaxed_by(platform, choices)).finish(), results);
  }
  return results;
}

}  // namespace perdura::litmus
