// Linux's report about this host as a responder, in the form that manifest.json stores.
#pragma once

#include <vector>

#include "harness/results/machine.h"
#include "methods/detection.h"

namespace perdura::program {

std::vector<harness::ResponderProperty> responder_properties(const methods::Detection& found);

}  // namespace perdura::program
