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

namespace {

std::unique_ptr<Platform> make(const std::string& name, NodeId nodes, Nanoseconds flush) {
  if (name == "shm") {
    ShmOptions options;
    options.node_count = nodes;
    options.write_latency = flush;
    return std::make_unique<ShmPlatform>(std::move(options));
  }
  sim::Profile profile = erda_testbed();
  profile.cpu.fence += flush;
  return std::make_unique<sim::SimPlatform>(profile, nodes);
}

}  // namespace

std::unique_ptr<Platform> make_platform(const std::string& name, NodeId nodes) {
  return make(name, nodes, Nanoseconds(0));
}

std::unique_ptr<Platform> make_platform_of_slow_memory(const std::string& name, NodeId nodes) {
  return make(name, nodes, Microseconds(2));
}

}  // namespace perdura::test
