// How processes of a run are started: words and variables as the calls of the kernel want them.
#pragma once

#include <string>
#include <vector>

namespace perdura::mojim {

// Pointers to the texts, which must outlive them, and a null pointer.
std::vector<char*> pointers(const std::vector<std::string>& texts);
// The environment of this process with these variables ("NAME=VALUE") set.
std::vector<std::string> environment_with(const std::vector<std::string>& more);

}  // namespace perdura::mojim
