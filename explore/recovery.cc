#include "explore/recovery.h"

#include <utility>

#include "explore/scenario_processes.h"
#include "platform/sim/machine.h"

namespace perdura::explore {

std::vector<pmem::ImageSpace> images_left(sim::SimPlatform& platform, NodeId servers) {
  std::vector<pmem::ImageSpace> images;
  for (NodeId node = 0; node < servers; ++node) {
    images.push_back(platform.machine_of_node(node).images());
  }
  return images;
}

LeftMemory::LeftMemory(sim::SimPlatform& platform, std::vector<pmem::ImageSpace> images)
    : spaces(std::move(images)) {
  for (NodeId node = 0; node < spaces.size(); ++node) {
    memories.push_back(platform.machine_of_node(node).crashed(spaces[node]));
  }
}

void recover(services::CrashScenario& scenario, const sim::Profile& profile, Time begin,
             std::deque<pmem::sim::CrashedMemory>& memories) {
  ScenarioProcesses run(scenario, profile, 0);
  run.platform().engine().advance(begin - run.now());
  for (NodeId node = 0; node < memories.size(); ++node) {
    run.platform().machine_of_node(node).adopt(memories[node]);
  }
  run.note_problems();
  run.start_servers();
  run.start_inspector();
  run.be_patient();
  run.run();
}

Recoveries::Recoveries(pmem::LazyImages& images, std::deque<pmem::sim::CrashedMemory>& memories,
                       services::CrashScenario& scenario, const sim::Profile& profile, Time begin)
    : images_(images), memories_(memories), scenario_(scenario), profile_(profile), begin_(begin) {}

bool Recoveries::next() {
  if (!images_.next()) return false;
  recover_once();
  found_new_ = known_.insert(found_).second;
  return true;
}

void Recoveries::repeat(const pmem::LazyImages::Decisions& decisions) {
  images_.repeat(decisions);
  recover_once();
}

void Recoveries::take(pmem::Choices& image) {
  images_.take(image);
  recover_once();
}

void Recoveries::recover_once() {
  if (count_++ > 0) scenario_.restore_snapshot();
  scenario_.stop_serving();
  for (std::size_t i = 0; i < memories_.size(); ++i) memories_[i].begin(images_, i);
  recover(scenario_, profile_, begin_, memories_);
  images_.end();
  for (pmem::sim::CrashedMemory& memory : memories_) memory.restore();
  found_ = scenario_.observations();
}

std::vector<pmem::ImageSpace::Choice> choices_of(const pmem::LazyImages& images) {
  std::vector<pmem::ImageSpace::Choice> all;
  for (std::size_t space = 0; space < images.spaces().size(); ++space) {
    const auto choices = images.choices(space);
    all.insert(all.end(), choices.begin(), choices.end());
  }
  return all;
}

}  // namespace perdura::explore
