// Finds the line of code that caused an event of a run. The return addresses are recorded when the
// event happens. At the end, those of the events that matter are resolved, by addr2line (binutils)
// and the debug information of the program. Without debug information, only the function is known;
// without addr2line, nothing.
#pragma once

#include <coroutine>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace perdura::explore {

// The return addresses of the calls that led here, innermost first. A coroutine that has been
// resumed is among them, but the coroutines that await it are not.
using CallStack = std::vector<void*>;
CallStack call_stack();
// Adds a suspended task, if there is one, as if it had called the outermost function. It is
// represented by the beginning of its function, since the place where it is suspended is not known.
void add_task(CallStack& stack, std::coroutine_handle<> task);

struct CallSite {
  std::string function;  // "perdura::systems::erda::ErdaPartition::answer"; empty if unknown
  std::string line;      // "systems/erda/server.cc:250"; empty without debug information
  // If the function above is not in a system: the function of a system that called it.
  std::string system{};

  std::string text() const;  // empty if nothing is known
};

// For each stack the innermost call in a system or in what systems are made of (systems/,
// persistence/, services/), not in the platform.
std::vector<CallSite> call_sites(std::span<const CallStack> stacks);
using ResolveCallSites = std::function<std::vector<CallSite>(std::span<const CallStack>)>;

}  // namespace perdura::explore
