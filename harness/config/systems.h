// The sections [systems.NAME] of an experiment: systems' own parameters, and variants of systems.
#pragma once

#include "harness/config/experiment.h"
#include "platform/base/toml_section.h"

namespace perdura::harness {

// Reads the sections, checked against the declarations of the experiment's driver. Throws
// UsageError.
void read_systems(const TomlSection& systems, Experiment& experiment);

// Throws UsageError, with its place, if a point names neither a system of the driver nor a variant
// of one.
void check_system_names(const Experiment& experiment);

}  // namespace perdura::harness
