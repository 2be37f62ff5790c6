#include "platform/litmus/explore.h"

#include <string>
#include <unordered_set>

#include "platform/pmem/model/choices.h"
#include "platform/sim/sim_platform.h"

namespace perdura::litmus {

namespace {

// Thrown where a run comes to a state that is known.
struct StateIsKnown {};

// The choices of an enumeration, except where they lead on from a known state.
class NewStates final : public pmem::Choices {
 public:
  using State = std::function<std::string()>;

  NewStates(pmem::Enumerator& all, std::unordered_set<std::string>& known)
      : all_(all), known_(known) {}

  void watch(State state) { state_ = std::move(state); }

  std::size_t choose(std::size_t n) override {
    if (!all_.repeats() && !known_.insert(state_()).second) throw StateIsKnown();
    return all_.choose(n);
  }

 private:
  pmem::Enumerator& all_;
  std::unordered_set<std::string>& known_;
  State state_;
};

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
  pmem::Enumerator all;
  std::unordered_set<std::string> known;
  while (all.next()) {
    NewStates choices(all, known);
    sim::SimPlatform platform(profile, litmus.nodes);
    Run run(litmus, platform, relaxed_by(platform, choices));
    choices.watch([&run, &platform] {
      std::string state;
      run.append_state(state);
      platform.append_state(state);
      return state;
    });
    try {
      add(run.finish(), explored.results);
    } catch (const StateIsKnown&) {
    }
  }
  explored.runs = all.sequences();
  explored.states = known.size();
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
