// What Linux tells of this host as a responder, as manifest.json keeps it.
#pragma once

#include <vector>

#include "harness/results/machine.h"
#include "persistence/detection.h"

namespace perdura::harness {

std::vector<ResponderProperty> responder_properties(const persistence::Detection& found);

}  // namespace perdura::harness
