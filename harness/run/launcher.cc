#include "harness/run/launcher.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "platform/base/error.h"

namespace perdura::harness {
namespace {

struct Variables {
  const char* launcher;
  const char* rank;
  const char* ranks;
};
// The order matters: mpirun within a Slurm job leaves Slurm's variables in place.
constexpr std::array kLaunchers{
    Variables{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    Variables{"srun", "PMIX_RANK", "SLURM_STEP_NUM_TASKS"},
    Variables{"srun or mpiexec", "PMI_RANK", "PMI_SIZE"},
};

// A descriptor of the mpirun that is this process's parent, or -1 if the parent is anything else.
int open_mpirun() {
  const pid_t parent = getppid();
  std::string name;
  std::getline(std::ifstream(fmt::format("/proc/{}/comm", parent)), name);
  constexpr std::array names{"mpirun", "mpiexec", "orterun"};
  if (std::find(names.begin(), names.end(), name) == names.end()) return -1;
  return static_cast<int>(syscall(SYS_pidfd_open, parent, 0));
}

}  // namespace

std::optional<Launch> find_launch(const std::function<const char*(const char*)>& environment,
                                  Discovery discovery) {
  const auto number = [&](const char* name) {
    const char* text = environment(name);
    return text == nullptr ? 0 : std::atoi(text);
  };
  const int tasks = number("SLURM_STEP_NUM_TASKS");
  for (const Variables& variables : kLaunchers) {
    if (environment(variables.rank) == nullptr) continue;
    // Without this check, Open MPI would end with a text of twenty lines.
    if (&variables == &kLaunchers.back() && discovery == Discovery::by_pmix && tasks > 0) {
      throw UsageError(
          "srun started this with PMI-1 or PMI-2, and this Open MPI takes PMIx alone: start it by "
          "srun --mpi=pmix, or by mpirun");
    }
    return Launch{number(variables.ranks), number(variables.rank), variables.launcher};
  }
  if (tasks > 1) {
    throw UsageError(
        fmt::format("srun started {} processes that cannot find each other; add --mpi=pmix to srun "
                    "(see 'srun --mpi=list')",
                    tasks));
  }
  return std::nullopt;
}

void check_size(const Launch& launch, int mpi_size) {
  if (launch.ranks == 0 || launch.ranks == mpi_size) return;
  throw UsageError(
      fmt::format("{} started {} processes, of which this MPI sees {}; start them with the mpirun "
                  "of the MPI that perdura was built with, or srun --mpi=pmix",
                  launch.launcher, launch.ranks, mpi_size));
}

void print_past_launcher(const std::string& line) {
  const int mpirun = open_mpirun();
  const auto shared =
      mpirun < 0 ? -1 : static_cast<int>(syscall(SYS_pidfd_getfd, mpirun, STDERR_FILENO, 0));
  std::fflush(stderr);
  [[maybe_unused]] const auto written =
      write(shared < 0 ? STDERR_FILENO : shared, line.data(), line.size());
  for (const int descriptor : {mpirun, shared}) {
    if (descriptor >= 0) close(descriptor);
  }
}

void end_mpirun_after(std::chrono::seconds time) {
  const int mpirun = open_mpirun();
  if (mpirun < 0 || fork() != 0) return;
  // mpirun waits until all processes have closed its pipes, so this child closes them.
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(descriptor);
  setsid();
  const auto milliseconds = std::chrono::milliseconds(time).count();
  pollfd ended{mpirun, POLLIN, 0};
  if (poll(&ended, 1, static_cast<int>(milliseconds)) == 0) {
    syscall(SYS_pidfd_send_signal, mpirun, SIGKILL, nullptr, 0);
  }
  _exit(0);
}

}  // namespace perdura::harness
