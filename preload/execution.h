// Command lines and environments of the processes of a run, in the form that the kernel's calls
// take.
#pragma once

#include <string>
#include <vector>

namespace perdura::preload {

// Returns pointers to the texts, which must outlive them, followed by a null pointer.
std::vector<char*> pointers(const std::vector<std::string>& texts);
// Returns the environment of this process with these variables ("NAME=VALUE") set.
std::vector<std::string> environment_with(const std::vector<std::string>& more);

}  // namespace perdura::preload
