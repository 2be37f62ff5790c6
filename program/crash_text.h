// Texts that the explorations of `perdura crash` have in common.
#pragma once

#include <string>

#include "explore/explorer.h"

namespace perdura::program {

// "845 recoveries, which cover all 1266 images"; if not all: "..., which cover 900 of 1266 images and
// exhaust 27 of 127 crash points".
std::string text_of(const explore::ImageCoverage& coverage);

}  // namespace perdura::program
