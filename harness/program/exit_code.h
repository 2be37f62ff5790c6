#pragma once

namespace perdura::harness {

// What a program ends with. Failed: it could not do its work, or something is wrong with what it
// found. Undecided: what it was to judge can be neither accepted nor refused.
enum class ExitCode : int { done = 0, failed = 1, usage = 2, undecided = 3 };

}  // namespace perdura::harness
