#include "bench/crash/recovery.h"

#include <fmt/format.h>

#include "platform/base/error.h"

namespace perdura::bench {

namespace {

// In virtual time: a system that has not served the inspector by then is assumed never to do so.
constexpr Picoseconds kPatienceOfInspector = std::chrono::seconds(2);

}  // namespace

Recovery::Recovery(services::CrashScenario& scenario, const sim::Profile& profile, Time begin,
                   std::deque<pmem::sim::CrashedMemory>& memories)
    : scenario_(scenario), platform_(profile, {{"server", scenario.servers()}, {"client", 1}}) {
  platform_.engine().advance(begin - platform_.engine().now());
  for (NodeId node = 0; node < memories.size(); ++node) {
    platform_.machine_of_node(node).adopt(memories[node]);
  }
}

void Recovery::run() {
  const NodeId inspector = scenario_.servers();
  for (NodeId node = 0; node < inspector; ++node) {
    platform_.start_service(node, 0, CompletionMode::polling,
                            [this](Thread& thread) { return serve(thread); });
  }
  platform_.start(inspector, static_cast<fabric::Port>(inspector), CompletionMode::polling,
                  [this](Thread& thread) { return inspect(thread); });
  platform_.at(platform_.engine().now() + kPatienceOfInspector, [this, inspector] {
    scenario_.note_problem("the system does not answer any more");
    platform_.kill(inspector);
  });
  try {
    platform_.run();
  } catch (const std::exception& error) {
    scenario_.note_problem(error.what());
  }
}

Task<> Recovery::serve(Thread& thread) {
  try {
    co_await scenario_.serve(thread);
  } catch (const std::exception& error) {
    scenario_.note_problem(fmt::format("recovery fails: {}", error.what()));
  }
}

Task<> Recovery::inspect(Thread& thread) {
  try {
    co_await scenario_.inspect(thread);
  } catch (const PlatformError& error) {
    scenario_.note_problem(error.what());
  }
}

void recover_from(pmem::LazyImages& images, services::CrashScenario& scenario,
                  const sim::Profile& profile, Time begin,
                  std::deque<pmem::sim::CrashedMemory>& memories) {
  for (std::size_t i = 0; i < memories.size(); ++i) memories[i].begin(images, i);
  Recovery(scenario, profile, begin, memories).run();
  images.end();
  for (pmem::sim::CrashedMemory& memory : memories) memory.restore();
}

}  // namespace perdura::bench
