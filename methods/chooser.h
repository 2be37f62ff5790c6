// Chooses how to make remote updates persistent: proves, at run time, which methods are right on
// the responder's configuration, and sorts them by speed. A method that is wrong on a configuration
// that the responder may have is never chosen.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "methods/proof.h"
#include "platform/fabric/types.h"

namespace perdura::methods {

// The needs of an application.
struct UpdateNeeds {
  Update update = Update::single;
  Bytes size = 64;                   // bytes of the only update, or of the first of two
  Bytes second_size = 8;             // bytes of the second update; a link has 8
  std::optional<Carrier> carrier{};  // only this one will do
  Link link = Link::cas;             // the operation that sets the link, with Update::publish
  bool responder_cpu = true;         // may take part before an update is acknowledged
  bool replay = true;                // recovery can replay messages from receive buffers
};

// Features that both devices of a connection have.
struct DeviceFeatures {
  bool flush = true;  // FLUSH for global visibility; if missing, READ emulates it
  bool flush_persistence = false;
  bool atomic_write = true;
  bool atomics = true;  // CAS; no device has it on iWARP
};

struct Choice {
  Method method;
  std::vector<std::string> reasons;  // one for each step, the requester's steps first
  bool wasteful = false;             // also right without some step
  std::optional<Picoseconds> expected{};
};

struct Refusal {
  std::string method;
  std::string reason;
};

struct Advice {
  std::vector<Choice> choices;  // right methods, best first
  std::vector<Refusal> refusals;
};

// The time of an update with a method; nullopt if unknown.
using CostOf = std::function<std::optional<Picoseconds>(const Method&)>;

// The error of modelled times: this is how close the model comes to the ratios that papers report
// (results/claims.csv). Methods that differ by no more are considered equally fast until they are
// measured.
inline constexpr int kModelErrorPercent = 10;

// Lists the methods that are right on each of `configurations`, the ones that the responder may
// have. Methods with steps that are unnecessary there come last; before them come those whose
// readers must make every link durable, marked or not. Among the methods that are as fast as the
// fastest, those come first that do not need the responder's CPU, and then those that need the
// fewest operations that not every device has. Then a method, of whatever kind, that has fewer steps
// and takes less time than the first is moved before it. Without costs, methods with fewer round
// trips come first.
Advice advise(const std::vector<Configuration>& configurations, const UpdateNeeds& needs,
              const DeviceFeatures& features, const CostOf& cost = {});

// The best method. Throws UsageError with the reason if there is none.
Method choose(const std::vector<Configuration>& configurations, const UpdateNeeds& needs,
              const DeviceFeatures& features);

// One line that says why there is no method, and what would help.
std::string why_nothing(const std::vector<Configuration>& configurations, const UpdateNeeds& needs,
                        const Advice& advice);

}  // namespace perdura::methods
