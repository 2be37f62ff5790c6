#pragma once

#include <vector>

#include "report/contents.h"

namespace perdura::report {

/// Assigns every series of the figures a style of plots/style.gp. A series has the same style in
/// all figures over the same column, and a different one from every series that shares a figure
/// with it, as far as there are enough styles. A series gets the style of its position in the
/// report's order unless an earlier series has taken it.
void assign_styles(std::vector<Section>& sections);

}  // namespace perdura::report
