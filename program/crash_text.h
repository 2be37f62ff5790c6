// Texts that the explorations of `perdura crash` have in common.
#pragma once

#include <string>

#include "explore/explorer.h"

namespace perdura::program {

// "127 crash points exhausted; 845 recoveries cover all 1266 images".
std::string text_of(const explore::ImageCoverage& coverage);

}  // namespace perdura::program
