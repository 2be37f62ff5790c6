// What started this process: mpirun, srun, or nobody. MPI is initialized only if a launcher did.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace perdura::harness {

// What a launcher says in the environment.
struct Launch {
  int ranks = 0;  // that it started; 0 if it does not say
  int rank = 0;   // of this process
  std::string launcher{};
};

// By which protocols the MPI that this was built with is told of the other processes: Open MPI by
// PMIx alone.
enum class Found { by_pmix, by_pmi_too };
// None if this process was started alone, such as in the script of a Slurm job. Throws UsageError
// if processes were started that cannot find each other: by srun without PMI, or with another one
// than the MPI's.
std::optional<Launch> find_launch(const std::function<const char*(const char*)>& environment,
                                  Found found = Found::by_pmi_too);

// Throws UsageError if the processes that the launcher started do not see each other, since it is
// of another MPI.
void check_size(const Launch& launch, int mpi_size);

// Writes the line by which a run ends badly to stderr. While Open MPI's mpirun ends its ranks, it
// does not read what they write, and it may be killed before it does. If it started this process on
// this host, the line is written to mpirun's own stderr, where the kernel lets one process share
// another's file (pidfd_getfd).
void print_past_launcher(const std::string& line);

// If Open MPI's mpirun started this process, and on this host: kills it unless it ends within
// `time`. It waits for ever for a host that is cut off, whatever its ranks do. This process need
// not live that long.
void end_mpirun_after(std::chrono::seconds time);

}  // namespace perdura::harness
