// Which line of code did what an observer was told: the return addresses are noted at the time, and
// resolved at the end for those that matter, by addr2line (binutils) and the debug information of
// the program. Without debug information, only the function is known; without addr2line, nothing.
#pragma once

#include <coroutine>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace perdura::bench {

// The return addresses of the calls that led here, innermost first. Of a coroutine that has been
// resumed there is only the coroutine itself, not who awaits it.
using CallStack = std::vector<void*>;
CallStack call_stack();
// Adds a suspended task, if there is one, as if it had called the outermost. Of it only the
// beginning of the function is known.
void add_task(CallStack& stack, std::coroutine_handle<> task);

struct CallSite {
  std::string function;  // "perdura::systems::erda::ErdaPartition::answer"; empty if unknown
  std::string line;      // "systems/erda/server.cc:250"; empty without debug information
  // If that is not in a system: the function of a system that called it.
  std::string system{};

  std::string text() const;  // empty if nothing is known
};

// For each stack the innermost call in a system or in what systems are made of (systems/,
// persistence/, services/), not in the platform.
std::vector<CallSite> call_sites(std::span<const CallStack> stacks);
using ResolveCallSites = std::function<std::vector<CallSite>(std::span<const CallStack>)>;

}  // namespace perdura::bench
