// Determines what started this process: mpirun, srun, or no launcher. MPI is initialized only if a
// launcher did.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace perdura::harness {

// The information in a launcher's environment variables.
struct Launch {
  int ranks = 0;  // number of ranks started; 0 if unknown
  int rank = 0;   // rank of this process
  std::string launcher{};
};

// The protocols by which this build's MPI can find the other processes. Open MPI knows PMIx only.
enum class Discovery { by_pmix, by_pmi_too };
// Returns nullopt if this process was started alone, such as in the script of a Slurm job. Throws
// UsageError if srun started processes that cannot find each other: without PMI, or with a PMI that
// this build's MPI does not know.
std::optional<Launch> find_launch(const std::function<const char*(const char*)>& environment,
                                  Discovery discovery = Discovery::by_pmi_too);

// Throws UsageError if the launcher belongs to another MPI, so that the processes it started do not
// see each other.
void check_size(const Launch& launch, int mpi_size);

// Writes the line by which a run ends badly to stderr. While Open MPI's mpirun ends its ranks, it
// does not read what they write, and may be killed before it does. If it started this process on
// this host, the line therefore goes to mpirun's own stderr, provided the kernel lets one process
// share another's file (pidfd_getfd).
void print_past_launcher(const std::string& line);

// If Open MPI's mpirun started this process on this host, kills it unless it ends within `time`: it
// waits forever for a host that is cut off, whatever its ranks do. A child process does this, so
// the caller may exit earlier.
void end_mpirun_after(std::chrono::seconds time);

}  // namespace perdura::harness
