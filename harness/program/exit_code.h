#pragma once

namespace perdura::harness {

// The exit code of a program. failed: it could not do its work, or it found something wrong.
// undecided: what it was to judge can be neither accepted nor refused.
enum class ExitCode : int { done = 0, failed = 1, usage = 2, undecided = 3 };

}  // namespace perdura::harness
