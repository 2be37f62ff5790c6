// Child processes (platform/child_process.h) of simulated nodes: nodes of their parents' machines,
// which SimPlatform makes and kills.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "platform/child_process.h"
#include "platform/runtime/sync.h"
#include "platform/sim/sim_ring.h"

namespace perdura::sim {

// The state of a child, shared by all that refer to it.
struct ChildLife {
  NodeId node = 0;
  NodeId parent = 0;
  bool ready = false;
  bool gone = false;
  std::string problem{};  // why it has ended
  std::shared_ptr<SimRing> to_child{};
  std::shared_ptr<SimRing> to_parent{};
  WaitList changed{};

  // Marks it as gone: it was killed, or its body has ended.
  void end();
};

// The code that the child's thread executes; `node` is the child's.
Task<> run_sim_child(Node& node, std::shared_ptr<ChildLife> life, ChildProgram program,
                     ChildOrder order);
// The parent's end. `kill`: the child's process, if it lives.
std::unique_ptr<ChildProcess> sim_child(std::shared_ptr<ChildLife> life,
                                        std::function<void()> kill);

}  // namespace perdura::sim
