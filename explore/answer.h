// The answer of an exploration of a system on a kind of server. An exploration that finds no loss
// has tried some images of some crash points; another one, which has looked closer, may have found
// one. So what was found here is never said to be more than what the committed explorations
// (explored.h) have found for the same setting and server.
#pragma once

#include <optional>
#include <string>

#include "explore/crash.h"

namespace perdura::explore {

struct Answer {
  services::GuaranteeLevel found{};  // what this exploration found
  // The level that the committed exploration of the same setting and server found; nullopt if there
  // is none, or if what failed is not the power of all servers.
  std::optional<services::GuaranteeLevel> known;

  services::GuaranteeLevel level() const;
  // More is known to be lost than was found here.
  bool looked_less_closely() const { return level() < found; }
  // The text of such an answer: what was found, and where more is known. `tried` says how much was
  // tried.
  std::string beside_what_is_known(const std::string& tried) const;
};

// The answer of an exploration of power failures of all servers, in which the level held.
Answer answer_of(const services::SystemInfo& system, const services::CrashSetup& setup,
                 services::GuaranteeLevel found);
Answer answer_of(const services::SystemInfo& system, const CrashOptions& options,
                 const CrashResult& result);

}  // namespace perdura::explore
