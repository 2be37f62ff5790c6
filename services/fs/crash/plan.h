// What the sessions of a file system do in a history in which failures are tried.
#pragma once

#include <cstdint>
#include <vector>

#include "platform/base/units.h"
#include "platform/pmem/model/tape.h"
#include "services/fs/crash/step.h"

namespace perdura::fs {

// A session between two failures.
struct SessionPlan {
  std::vector<Step> steps{};
  Picoseconds pause{};  // behind each
};

struct FsCrashPlan {
  // By session, then by the number of failures before it.
  std::vector<std::vector<SessionPlan>> sessions{};
  // So many steps of the first session are done before failures are tried.
  std::size_t steps_before = 0;
  // In each epoch the first session opens so many files that all of them use.
  std::size_t shared = 0;
  Bytes size = 1 * MiB;      // of the file system
  bool may_be_full = false;  // operations may be refused for want of space
};

// Every operation in a row by one session.
FsCrashPlan one_session_plan();
// Two sessions that change the same files and names.
FsCrashPlan two_sessions_plan();

// The sequences of `length` steps, all of all_steps(): how many, and one of them. Failures are
// tried in its last step; those before it are the last ones of other sequences.
std::uint64_t sequences(std::uint32_t length);
FsCrashPlan sequence_plan(std::uint32_t length, std::uint64_t number);
std::string name_of_sequence(std::uint32_t length, std::uint64_t number);

// One to three sessions that share files. Streams of the tape: "store", how large the file system
// is; "client-0", "client-1", ... each session's operations. 0 is no operation.
FsCrashPlan generated_plan(pmem::Tape& tape, std::uint32_t failures);

}  // namespace perdura::fs
