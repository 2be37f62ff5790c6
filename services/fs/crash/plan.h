// The operations that sessions do in a history in which failures are tried.
#pragma once

#include <cstdint>
#include <vector>

#include "platform/base/units.h"
#include "platform/pmem/model/tape.h"
#include "services/crash.h"
#include "services/fs/crash/step.h"

namespace perdura::fs {

// The operations of a session between two failures.
struct SessionPlan {
  std::vector<Step> steps{};
  Picoseconds pause{};  // after each step
};

struct FsCrashPlan {
  // By session, then by the number of failures before.
  std::vector<std::vector<SessionPlan>> sessions{};
  // Number of steps that the first session does before failures are tried.
  std::size_t steps_before = 0;
  // Number of files that all sessions share; the first session opens them after each failure.
  std::size_t shared = 0;
  Bytes size = 1 * MiB;  // size of the file system
  // The file system is almost full when the sessions begin, so that operations may fail for lack of
  // space.
  bool is_almost_full = false;
  // All sessions begin their first steps at the same time, from which on failures are tried.
  bool at_once = false;
  // A metadata server that has failed alone comes back, even if it has a mirror.
  bool metadata_returns = false;
};

// One session that does every third of all_steps(), and then work that leads to garbage collection.
// The brief one does less of both, for systems whose operations have many crash points.
FsCrashPlan one_session_plan(bool brief);
// Two sessions that change the same files and names.
FsCrashPlan two_sessions_plan();

// The sequences of steps drawn from all_steps(): their number, and one of them. Those of one session
// are all that there can be, and failures are tried in the last step only. Of those that two
// sessions do at once there are the pairs of steps on paths of which one leads to the other; none
// of more sessions.
std::uint64_t sequences(const services::SequenceKind& kind);
FsCrashPlan sequence_plan(const services::SequenceKind& kind, std::uint64_t number);
std::string name_of_sequence(const services::SequenceKind& kind, std::uint64_t number);

// Up to four sessions that share files. Each draws its operations from its stream of the tape:
// "client-0", "client-1", ... A draw of 0 is no operation. The stream "filling" draws whether the
// file system is small and almost full.
FsCrashPlan generated_plan(pmem::Tape& tape, std::uint32_t failures);

}  // namespace perdura::fs
