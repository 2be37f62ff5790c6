// Chooses how to make remote updates persistent: of all methods those that are right on the
// responder's configuration, proven there and then, the fastest first. What is right for no
// configuration that the responder may have is never chosen.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "persistence/proof.h"
#include "platform/fabric/types.h"

namespace perdura::persistence {

// What an application wants and has.
struct UpdateNeeds {
  Update update = Update::single;
  Bytes size = 64;                   // of the update, or of the first of two
  Bytes second_size = 8;             // of the second
  std::optional<Carrier> carrier{};  // if it must be one
  bool responder_cpu = true;         // may take part before the update is acknowledged
  bool replay = true;                // recovery can make sense of messages in receive buffers
};

// Of both devices of a connection.
struct DeviceFeatures {
  bool flush = true;  // for global visibility; without it, READ emulates it
  bool flush_persistence = false;
  bool atomic_write = true;
};

struct Choice {
  Method method;
  std::vector<std::string> reasons;  // of each step, the requester's first
  bool wasteful = false;             // right without some step, too
  std::optional<Picoseconds> expected{};
};

struct Refusal {
  std::string method;
  std::string reason;
};

struct Advice {
  std::vector<Choice> choices;  // right; the best first
  std::vector<Refusal> refusals;
};

// How long an update takes by a method; nothing if that is not known.
using CostOf = std::function<std::optional<Picoseconds>(const Method&)>;

// How far modelled times may be off: that near the model comes to the ratios that papers report
// (results/claims.csv). Methods that differ by no more are as fast as each other, as far as anybody
// knows before measuring them.
inline constexpr int kModelErrorPercent = 10;

// A method must be right on each of `configurations`: those that the responder may have, as far as
// is known. What has steps that are not needed there comes last. Of those that are as fast as the
// fastest, the first are those that leave the responder's CPU alone and need the fewest operations
// that not every device has; without costs, those with fewer round trips come first.
Advice advise(const std::vector<Configuration>& configurations, const UpdateNeeds& needs,
              const DeviceFeatures& features, const CostOf& cost = {});

// The method of the best choice. Throws UsageError with the reason if there is none.
Method choose(const std::vector<Configuration>& configurations, const UpdateNeeds& needs,
              const DeviceFeatures& features);

// In one line, why nothing can be chosen and what would help.
std::string why_nothing(const std::vector<Configuration>& configurations, const UpdateNeeds& needs,
                        const Advice& advice);

}  // namespace perdura::persistence
