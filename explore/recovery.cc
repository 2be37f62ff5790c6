#include "explore/recovery.h"

#include <utility>

#include "explore/scenario_run.h"
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
  ScenarioRun run(scenario, profile, 0);
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

void recover_from(pmem::LazyImages& images, services::CrashScenario& scenario,
                  const sim::Profile& profile, Time begin,
                  std::deque<pmem::sim::CrashedMemory>& memories) {
  for (std::size_t i = 0; i < memories.size(); ++i) memories[i].begin(images, i);
  recover(scenario, profile, begin, memories);
  images.end();
  for (pmem::sim::CrashedMemory& memory : memories) memory.restore();
}

}  // namespace perdura::explore
