// Linux's report about this host as a responder, in the form that manifest.json stores.
#pragma once

#include <vector>

#include "harness/results/machine.h"
#include "persistence/detection.h"

namespace perdura::harness {

std::vector<ResponderProperty> responder_properties(const persistence::Detection& found);

}  // namespace perdura::harness
