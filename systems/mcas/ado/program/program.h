// The program of processes of active data objects, perdura-ado, and what launches it.
#pragma once

#include <memory>

#include "platform/child_process.h"
#include "systems/flushing.h"
#include "systems/mcas/ado/launcher.h"

namespace perdura::systems::mcas::ado {

struct LaunchOptions {
  Flushing flushing = Flushing::lines;          // as the shard's own
  CompletionMode mode = CompletionMode::event;  // how the processes wait
  ChildLimits limits{};
};

// Launches processes of the shard on this thread, to which they belong.
std::shared_ptr<Launcher> make_launcher(Thread& thread, LaunchOptions options);

// The program that they execute, perdura-ado.
ChildProgram ado_program();

}  // namespace perdura::systems::mcas::ado
