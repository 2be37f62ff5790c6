// The histories in which failures of a file system are tried: sessions of programs, on its node or
// on clients of its servers, and an inspector that reads the state after recovery, works with it,
// unmounts it and mounts it again.
#pragma once

#include <memory>
#include <span>

#include "platform/pmem/model/tape.h"
#include "services/fs/fs.h"
#include "services/service.h"

namespace perdura::fs {

std::span<const services::CrashSchedule> fs_schedules();

// `system` must outlive the runs of all of the following.
services::CrashHistory fs_crash_history(const FsSystem& system, const services::CrashSetup& setup,
                                        const services::CrashSchedule& schedule);
services::CrashSequence fs_crash_sequence(const FsSystem& system, const services::CrashSetup& setup,
                                          const services::SequenceKind& kind, std::uint64_t number);
// A scenario drawn from the tape: after each failure new sessions continue.
std::unique_ptr<services::CrashScenario> fs_generated_scenario(const FsSystem& system,
                                                               const services::CrashSetup& setup,
                                                               pmem::Tape& tape,
                                                               std::uint32_t failures);

}  // namespace perdura::fs
