#include "explore/generated_run.h"

#include <fmt/format.h>

#include <utility>

#include "explore/crash.h"

namespace perdura::explore {

namespace {

// With fences that take long, others often see what is not durable yet, and a failure often finds
// it so; else they last for less than any message.
sim::Profile drawn_profile(sim::Profile profile, pmem::Tape& tape) {
  constexpr Picoseconds kLongFence = Microseconds(10);
  constexpr double kSlowReads = 64e6;  // over the bus, a cache line in a microsecond
  if (tape.stream("fences").choose(4) == 3) profile.cpu.fence = kLongFence;
  if (tape.stream("bus").choose(8) == 7) profile.nic.pcie_read_bandwidth = kSlowReads;
  return profile;
}

std::string image_stream(const PlannedFailure& failure) {
  return fmt::format("image-{}", failure.number);
}

}  // namespace

GeneratedRun::GeneratedRun(const services::ServedSystem& system, const sim::Profile& profile,
                           const services::CrashSetup& setup, pmem::Tape& tape)
    : tape_(tape),
      profile_(drawn_profile(with_commits_if_needed(profile, system.info, setup.parameters), tape)),
      failures_(drawn_failures(tape)),
      scenario_(system.service->generated_scenario(system.info.name, setup, tape,
                                                   static_cast<std::uint32_t>(failures_.size()))),
      run_(*scenario_, profile_, setup.model,
           drawn_plan(tape, std::move(failures_), *scenario_, setup.late_placements),
           [this](const PlannedFailure& failure) -> pmem::Choices& {
             return images_.emplace_back(tape_.stream(image_stream(failure)));
           }) {
  run_.note_problems();
}

pmem::Tape::Streams GeneratedRun::with_image(const ScenarioRun::ImagesTried& tried) const {
  const std::vector<PlannedFailure>& failures = run_.plan().failures;
  const std::size_t last = tried.failure.value();
  pmem::Tape::Streams streams = tape_.drawn();
  std::vector<std::uint64_t>& image = streams[image_stream(failures[last])];
  image.clear();
  for (const auto& [taken, of] : tried.image) image.push_back(of - 1 - taken);
  for (std::size_t later = last + 1; later < failures.size(); ++later) {
    streams[fmt::format("failure-{}", failures[later].number)].clear();
  }
  const std::size_t epochs = failures.size() + 1;
  for (auto& [name, choices] : streams) {
    if (stream_of(name) != StreamOf::clients) continue;
    choices.resize(places_of_epoch(choices.size(), epochs, last + 1).begin);
  }
  return streams;
}

pmem::Tape::Streams GeneratedRun::anchored() const {
  const std::vector<PlannedFailure>& failures = run_.plan().failures;
  pmem::Tape::Streams streams = tape_.drawn();
  for (std::size_t before = 0; before < failures.size(); ++before) {
    const std::uint32_t number = failures[before].number;
    const auto trigger = run_.triggers_of_failures().find(number);
    if (trigger == run_.triggers_of_failures().end()) continue;
    const std::vector<std::uint64_t> choices =
        choices_of(trigger->second, planned_changes(*scenario_, before));
    if (choices.empty()) continue;
    std::vector<std::uint64_t>& failure = streams[fmt::format("failure-{}", number)];
    failure.resize(kTriggerOfFailure);
    failure.insert(failure.end(), choices.begin(), choices.end());
  }
  return streams;
}

}  // namespace perdura::explore
