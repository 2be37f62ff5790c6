// How a process of `perdura mojim run` tells the one that has started it that it serves, or why it
// cannot, so that the latter says so in one line for both. Reports are lines in a pipe.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace perdura::preload {

// In the process that was started: calls `serve`, which calls the function that it is given when it
// serves. False if it cannot serve, which has been reported; throws what `serve` throws later.
bool serve_and_report(int pipe,
                      const std::function<void(const std::function<void()>& serves)>& serve);

// In the one that has started it: waits until so many processes serve. Empty if they do; else why
// not. `who` has ended without a word of it, or with one on standard error.
std::string why_not_serving(int pipe, std::size_t processes, const std::string& who);

}  // namespace perdura::preload
