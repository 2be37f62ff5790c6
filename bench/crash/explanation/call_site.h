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
// The code of a suspended coroutine, in place of a call by it.
void* code_of(std::coroutine_handle<> coroutine);

struct CallSite {
  std::string function;  // "perdura::systems::erda::ErdaPartition::answer"; empty if unknown
  std::string line;      // "systems/erda/server.cc:250"; empty without debug information

  std::string text() const;  // empty if nothing is known
};

// For each stack the innermost call in a system or in what systems are made of (systems/,
// persistence/, services/), not in the platform.
std::vector<CallSite> call_sites(std::span<const CallStack> stacks);
using ResolveCallSites = std::function<std::vector<CallSite>(std::span<const CallStack>)>;

}  // namespace perdura::bench
