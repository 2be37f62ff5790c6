// The program that executes active data objects, perdura-ado, and its launcher.
#pragma once

#include <memory>

#include "platform/child_process.h"
#include "systems/flushing.h"
#include "systems/mcas/ado/launcher.h"

namespace perdura::systems::mcas::ado {

struct LaunchOptions {
  Flushing flushing = Flushing::lines;          // the shard's own
  CompletionMode mode = CompletionMode::event;  // how the processes wait
  ChildLimits limits{};
};

// Makes a launcher for the shard on this thread; the processes belong to this thread.
std::shared_ptr<Launcher> make_launcher(Thread& thread, LaunchOptions options);

// The program that the processes execute, perdura-ado.
ChildProgram ado_program();

}  // namespace perdura::systems::mcas::ado
