#include "explore/recovery.h"

#include <fmt/format.h>

#include "explore/servers.h"
#include "platform/base/error.h"
#include "platform/base/limits.h"
#include "platform/sim/machine.h"

namespace perdura::explore {

Recovery::Recovery(services::CrashScenario& scenario, const sim::Profile& profile, Time begin,
                   std::deque<pmem::sim::CrashedMemory>& memories)
    : scenario_(scenario),
      patience_(scenario),
      platform_(profile, {{"server", scenario.servers()}, {"client", 1}}) {
  platform_.engine().advance(begin - platform_.engine().now());
  for (NodeId node = 0; node < memories.size(); ++node) {
    platform_.machine_of_node(node).adopt(memories[node]);
  }
  scenario_.watch([this] { patience_.note_progress(); });
}

Recovery::~Recovery() { scenario_.watch({}); }

void Recovery::run() {
  const NodeId inspector = scenario_.servers();
  start_servers(platform_, scenario_, [this](Thread& thread) { return serve(thread); });
  platform_.start(inspector, static_cast<fabric::Port>(inspector), CompletionMode::polling,
                  [this](Thread& thread) { return inspect(thread); });
  patience_.begin(platform_, [this, inspector] { platform_.kill(inspector); });
  try {
    platform_.run();
  } catch (const std::exception& error) {
    rethrow_refused_memory(error);
    scenario_.note_problem(error.what());
  }
}

Task<> Recovery::serve(Thread& thread) {
  try {
    co_await scenario_.serve(thread);
  } catch (const std::exception& error) {
    rethrow_refused_memory(error);
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

}  // namespace perdura::explore
