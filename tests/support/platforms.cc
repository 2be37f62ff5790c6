#include "tests/support/platforms.h"

#include "platform/shm/shm_platform.h"
#include "platform/sim/sim_platform.h"

namespace perdura::test {

std::vector<std::string> platform_names() { return {"sim", "shm"}; }

std::string profile_path(const std::string& name) {
  return PERDURA_SOURCE_DIR "/profiles/" + name + ".toml";
}

const sim::Profile& erda_testbed() {
  static const sim::Profile profile = sim::load_profile(profile_path("erda-connectx3"));
  return profile;
}

std::unique_ptr<Platform> make_platform(const std::string& name, NodeId nodes) {
  if (name == "shm") {
    ShmOptions options;
    options.node_count = nodes;
    return std::make_unique<ShmPlatform>(std::move(options));
  }
  return std::make_unique<sim::SimPlatform>(erda_testbed(), nodes);
}

}  // namespace perdura::test
