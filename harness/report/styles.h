#pragma once

#include <vector>

#include "harness/report/contents.h"

namespace perdura::report {

/// Gives every series of the figures a style of plots/style.gp: the same in all figures over the
/// same column, and another one than any series that it shares a figure with, as far as there are
/// styles enough. A series keeps the style of its place in the report's order unless that is taken
/// by one before it.
void assign_styles(std::vector<Section>& sections);

}  // namespace perdura::report
