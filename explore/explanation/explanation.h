// Explains why a run lost a value in a failure: by a diagram of the events that matter, and by
// words that say what was lost, where the value was last seen, which rule of the persistence model
// allowed the loss, and which line of code was the first to rely on the value.
//
//   Recording recording;
//   platform.observe(recording);
//   ...
//   fmt::print("{}", as_text(explain(recording, {.title = "erda on dmp ddio", ...})));
//
// The same run gives the same explanation.
#pragma once

#include "explore/explanation/call_site.h"
#include "explore/explanation/diagram.h"
#include "explore/explanation/lost_value.h"
#include "explore/explanation/recording.h"

namespace perdura::explore {

Diagram explain(const Recording& recording, const ExplainedRun& run,
                const ResolveCallSites& resolve = call_sites);

}  // namespace perdura::explore
