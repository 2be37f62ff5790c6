// perdura mojim run, read and recover: runs programs that are unaware of Mojim on a file that Mojim
// replicates, or on a copy of it (docs/systems/mojim.md).
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "harness/program/companion.h"
#include "platform/base/error.h"
#include "platform/base/path_kind.h"
#include "platform/base/words.h"
#include "platform/fabric/shm/job.h"
#include "preload/cluster.h"
#include "preload/copy_processes.h"
#include "preload/execution.h"
#include "preload/last_run.h"
#include "preload/primary_process.h"
#include "preload/program_process.h"
#include "preload/reader_processes.h"
#include "preload/requests.h"
#include "preload/run_lock.h"
#include "preload/start_report.h"
#include "program/commands.h"
#include "program/mojim_signals.h"

namespace perdura::program {

namespace fs = std::filesystem;
using preload::Cluster;

namespace {

struct MojimArguments {
  Cluster cluster{};
  std::string primary;
  std::string mirror;
  std::vector<std::string> backups;
  std::string log;
  std::string persistence = "correct";
  std::string ddio = "on";
  std::string take;
  std::vector<std::string> command;
};

Cluster cluster_of(const MojimArguments& arguments) {
  Cluster cluster = arguments.cluster;
  cluster.files = {arguments.primary};
  if (!arguments.mirror.empty()) cluster.files.push_back(arguments.mirror);
  if (arguments.mirror.empty() && !arguments.backups.empty()) {
    throw UsageError("--backup: the backups follow a mirror; add --mirror FILE");
  }
  cluster.files.insert(cluster.files.end(), arguments.backups.begin(), arguments.backups.end());
  for (std::string& file : cluster.files) {
    // Canonical paths, so that one file always has the same FILE.mojim.
    std::error_code error;
    const fs::path canonical = fs::weakly_canonical(fs::absolute(file), error);
    if (!error) file = canonical.string();
    if (file.find_first_of(":\n") != std::string::npos) {
      throw UsageError(
          fmt::format("{}: the name of a replicated file has no ':' and is one line", file));
    }
    if (std::count(cluster.files.begin(), cluster.files.end(), file) > 1) {
      throw UsageError(fmt::format("{}: given twice; each node has a file of its own", file));
    }
    const fs::path folder = fs::path(file).parent_path();
    if (kind_of(folder) != PathKind::folder) {
      throw UsageError(fmt::format("{}: {}", folder.string(), not_a_folder(folder)));
    }
  }
  // If this run is killed, the next one removes what it leaves under this job name.
  cluster.job = fabric::shm::automatic_name(fmt::format("mojim-{}", getpid()));
  cluster.size = round_up(cluster.size, 4 * KiB);
  cluster.ddio = arguments.ddio == "on";
  if (arguments.persistence == "paper") cluster.domain.clear();
  if (!arguments.log.empty()) {
    if (!cluster.system().copies_on_disk) {
      throw UsageError(fmt::format(
          "--log: a mirror of {} has its log beside its file; leave it out", cluster.mode));
    }
    cluster.log = fs::absolute(arguments.log).lexically_normal().string();
  }
  cluster.system();
  return cluster;
}

[[noreturn]] void fail_to_start(const std::string& program, int problem) {
  throw UsageError(fmt::format("{}: {}", program, std::strerror(problem)));
}

// Checks that the program can be executed, before anything is created for it.
void check_program(const std::string& program) {
  if (program.find('/') != std::string::npos) {
    if (access(program.c_str(), X_OK) != 0) fail_to_start(program, errno);
    return;
  }
  const char* const path = std::getenv("PATH");
  for (const std::string& folder : parts_of(path == nullptr ? "/bin:/usr/bin" : path, ':')) {
    const fs::path file = fs::path(folder.empty() ? "." : folder) / program;
    if (access(file.c_str(), X_OK) == 0 && kind_of(file) == PathKind::file) return;
  }
  fail_to_start(program, ENOENT);
}

[[noreturn]] void become(const std::vector<std::string>& command,
                         const std::vector<std::string>& more) {
  const std::vector<std::string> environment = preload::environment_with(more);
  execvpe(command[0].c_str(), preload::pointers(command).data(),
          preload::pointers(environment).data());
  fail_to_start(command[0], errno);
}

void tell(const std::string& line) { std::cerr << fmt::format("perdura mojim: {}\n", line); }

std::string state_of_copy(bool complete, bool missed, bool is_watched = true) {
  if (missed) {
    return "may lack the last sync points: its process was killed or stopped; the next run gives "
           "it the file";
  }
  if (!complete) return "is incomplete: the program ended before it had got all of the file";
  return is_watched ? "holds all sync points that it has received"
                    : "holds the sync points that the program has made by calls of the C library";
}

std::string preloaded(const char* library) {
  return "LD_PRELOAD=" +
         harness::companion(library, "build or install all, not this program alone").string();
}

std::optional<preload::Take> take_of(const MojimArguments& arguments) {
  if (arguments.take.empty()) return std::nullopt;
  return arguments.take == "primary" ? preload::Take::primary : preload::Take::mirror;
}

// How the part of a run ended during which its processes existed.
struct Outcome {
  int status = 0;  // the program's exit status, as of wait(2)
  bool is_begun = false;
  bool is_used = false;
  bool is_settled = false;
  bool has_failed_sync = false;
  std::optional<std::string> why_unwatched{};
  std::vector<bool> gone{};  // by copy
};

// Waits for the processes that the program has left running, such as daemons: they, too, change the
// file and sync it. Returns the status of the program, or that of a process that used the file and
// was killed.
int wait_for_left(int status, const std::string& file, const std::vector<pid_t>& others,
                  const HandedOn& signals) {
  const preload::Requests requests(file);
  bool is_told = false;
  for (;;) {
    const std::vector<pid_t> left = preload::ProgramProcess::children(others);
    if (left.empty()) return status;
    siginfo_t about{};
    waitid(P_PID, static_cast<id_t>(left[0]), &about, WEXITED | WNOHANG | WNOWAIT);
    if (about.si_pid == 0 && !std::exchange(is_told, true)) {
      tell(
          fmt::format("the program has ended, and process {} that it has started goes on; this "
                      "waits for it",
                      left[0]));
    }
    const int its = signals.wait_for(left[0]);
    if (WIFSIGNALED(its) && WIFEXITED(status) && requests.has_used(left[0])) status = its;
  }
}

Outcome run_program(const MojimArguments& arguments, const Cluster& cluster,
                    const preload::RunLock& lock, preload::ThisRun& this_run) {
  std::vector<std::string> environment = cluster.environment();
  environment.push_back(preloaded("libperdura_mojim.so"));
  const std::string perdura = fs::read_symlink("/proc/self/exe").string();
  const HandedOn signals;
  std::optional<preload::CopyProcesses> copies;
  std::optional<preload::PrimaryProcess> primary;
  {
    const Blocked now;
    lock.share_with_children(true);
    copies.emplace(cluster, perdura);
    primary.emplace(cluster, perdura, copies->life());
    lock.share_with_children(false);
  }
  this_run.note_serving();
  Outcome outcome;
  const std::vector<pid_t> others = preload::ProgramProcess::children({});
  const preload::ProgramProcess program(arguments.command, preload::environment_with(environment),
                                        primary->calls());
  outcome.why_unwatched = program.why_unwatched();
  outcome.status =
      wait_for_left(signals.wait_for(program.id()), cluster.files.front(), others, signals);
  // After a failure the next run rolls back what was not synced, as after a power failure.
  outcome.is_settled = WIFEXITED(outcome.status) && primary->settle();
  const preload::Requests requests(cluster.files.front());
  outcome.is_begun = requests.has_begun();
  outcome.has_failed_sync = requests.has_failed();
  outcome.is_used = primary->is_used();
  outcome.gone = copies->gone();
  // The caller completes the copies with the updates that have arrived at them.
  for (NodeId node = 1; node < cluster.files.size(); ++node) {
    preload::take_over_readers(cluster.files[node]);
  }
  return outcome;
}

struct Problem {
  std::string line;
  bool is_difference = false;  // the copies differ
};

// The reason why the copies may lack something after the program has ended regularly; nullopt if
// they are complete.
std::optional<Problem> problem_of(const Outcome& outcome, const Cluster& cluster,
                                  const std::vector<bool>& complete) {
  const std::string& file = cluster.files.front();
  if (!outcome.is_used || !outcome.is_begun) {
    return Problem{fmt::format(
        "{}: the program has not mapped or synced {}{}{}",
        outcome.is_begun ? "nothing was synced" : "nothing was replicated", file,
        outcome.why_unwatched
            ? fmt::format(", or cannot be watched (it is linked statically, or starts others "
                          "without LD_PRELOAD; the kernel holds no calls for others: {})",
                          *outcome.why_unwatched)
            : "",
        outcome.is_begun && outcome.is_settled ? "; what it has changed was given to the copies "
                                                 "at the end"
                                               : "")};
  }
  if (!outcome.is_settled) return Problem{fmt::format("{}: not all of it is at the copies", file)};
  for (NodeId node = 1; node < cluster.files.size(); ++node) {
    if (!complete[node] || outcome.gone[node - 1]) continue;
    const preload::Difference found = preload::difference(file, cluster.files[node]);
    if (found.bytes == 0) continue;
    return Problem{
        fmt::format("{} differs from {} in {} bytes, in pages: {}, the first at offset {}",
                    cluster.files[node], file, found.bytes, found.pages, found.first),
        true};
  }
  if (outcome.has_failed_sync) {
    return Problem{
        fmt::format("{}: a sync has failed, and the program has ended as if it had not; "
                    "what it has changed was given to the copies at the end",
                    file)};
  }
  return std::nullopt;
}

// Completes a copy; returns false if it remains incomplete. A backup that syncs do not wait for
// (M-syncsec) gets sync points in the background and may lack the last ones at the end; it is then
// given the whole file.
bool complete_copy(const Cluster& cluster, NodeId node, const Outcome& outcome) {
  bool is_complete = preload::recover_copy(cluster, node, outcome.gone[node - 1]);
  if (is_complete && outcome.is_settled && node > cluster.system().synced_copies &&
      preload::difference(cluster.files.front(), cluster.files[node]).bytes > 0) {
    is_complete = preload::recover_copy(cluster, node, true);
  }
  return is_complete;
}

harness::ExitCode run_mojim(const MojimArguments& arguments) {
  const Cluster cluster = cluster_of(arguments);
  const auto take = take_of(arguments);
  check_program(arguments.command.front());
  preload::check_sizes(cluster, take);
  const preload::RunLock lock(cluster.files);
  const bool anew = preload::begin_where_last_run_ended(cluster, take);
  preload::make_copies(cluster);
  preload::ThisRun this_run(cluster, anew);
  const Outcome outcome = run_program(arguments, cluster, lock, this_run);
  std::vector<bool> complete{true};
  for (NodeId node = 1; node < cluster.files.size(); ++node) {
    complete.push_back(complete_copy(cluster, node, outcome));
  }
  using End = preload::RunRecord::End;
  const bool is_killed = WIFSIGNALED(outcome.status);
  const auto problem = is_killed ? std::nullopt : problem_of(outcome, cluster, complete);
  const bool is_any_gone = std::count(outcome.gone.begin(), outcome.gone.end(), true) > 0;
  if (!outcome.is_begun) {
    this_run.forget();
  } else {
    const bool is_equal = outcome.is_settled && (!problem || !problem->is_difference);
    this_run.end(is_killed || is_any_gone ? End::failed
                 : is_equal               ? End::settled
                                          : End::unequal,
                 complete);
  }
  if (problem) {
    tell(problem->line);
    return harness::ExitCode::failed;
  }
  for (NodeId node = 1; outcome.is_used && node < cluster.files.size(); ++node) {
    tell(
        fmt::format("{} {}", cluster.files[node],
                    state_of_copy(complete[node], outcome.gone[node - 1], !outcome.why_unwatched)));
  }
  if (is_killed) {
    tell(fmt::format("{} was ended by signal {}", arguments.command.front(),
                     WTERMSIG(outcome.status)));
    return harness::ExitCode::failed;
  }
  // The exit code of the program itself.
  return static_cast<harness::ExitCode>(WEXITSTATUS(outcome.status));
}

// Creates nothing: a file that no run has replicated has no copies to complete.
harness::ExitCode recover_copies(const MojimArguments& arguments) {
  const Cluster cluster = cluster_of(arguments);
  for (NodeId node = 0; node < cluster.files.size(); ++node) {
    const std::string& file = cluster.files[node];
    if (kind_of(file) != PathKind::file || !std::ifstream(file)) {
      throw UsageError(fmt::format("{}: {}", file, not_a_file(file)));
    }
    if (!is_there(fs::path(preload::state_folder(file)) / preload::kRegion)) {
      throw UsageError(fmt::format("{}: no run has replicated it", file));
    }
  }
  preload::check_sizes(cluster, std::nullopt);
  const preload::RunLock lock(cluster.files);
  for (NodeId node = 1; node < cluster.files.size(); ++node) {
    const bool complete = preload::recover_copy(cluster, node, false);
    tell(fmt::format("{} {}", cluster.files[node], state_of_copy(complete, false)));
  }
  return harness::ExitCode::done;
}

struct ReadArguments {
  std::string file;
  std::vector<std::string> command;
};

// Executes the program in place of this process.
harness::ExitCode read_copy(const ReadArguments& arguments) {
  const std::string file = fs::absolute(arguments.file).lexically_normal().string();
  if (kind_of(file) != PathKind::file) {
    throw UsageError(fmt::format("{}: {}", file, not_a_file(file)));
  }
  if (!preload::has_state(file)) {
    throw UsageError(fmt::format(
        "{}: is no copy, since no run has named it as --mirror or --backup; read it without this",
        file));
  }
  if (const auto why = preload::why_unreadable(file, *preload::SharedReadersFile(file))) {
    throw UsageError(*why);
  }
  become(arguments.command,
         {"PERDURA_MOJIM_READS=" + file, preloaded("libperdura_mojim_reader.so")});
}

void add_cluster(harness::Command& command, MojimArguments& arguments) {
  command.option("--mode", arguments.cluster.mode, "m-sync, m-async, ... (perdura list)")
      .required();
  command
      .option("--size", arguments.cluster.size,
              "size of the file, as large as the program ever maps: 64MiB")
      .required()
      .size_with_unit();
  command.option("--primary", arguments.primary, "the program's file").required();
  command.option("--mirror", arguments.mirror, "the mirror's copy of it");
  command.option("--backup", arguments.backups, "a copy after the mirror's").one_value_at_a_time();
  command.option("--log", arguments.log,
                 "of m-syncdisk: a folder for the mirror's log, in persistent memory; "
                 "default: beside the mirror's file");
  command
      .option("--persistence", arguments.persistence,
              "correct: what is acknowledged is durable on the nodes that --domain and --ddio "
              "describe; paper: as published")
      .one_of({"correct", "paper"});
  command.option("--domain", arguments.cluster.domain, "persistence domain: dmp, mhp or wsp")
      .one_of({"dmp", "mhp", "wsp"});
  command.option("--ddio", arguments.ddio, "of the nodes: on or off").one_of({"on", "off"});
}

}  // namespace

void add_mojim(harness::Command& program, CommandContext&) {
  harness::Command& mojim =
      program.subcommand("mojim", "Runs programs on a file that Mojim replicates on this host");
  mojim.require_subcommand();
  const auto arguments = std::make_shared<MojimArguments>();

  harness::Command& run = mojim.subcommand(
      "run", "Starts the copies and a program that maps the file, and ends the copies after it");
  add_cluster(run, *arguments);
  run.option("--take", arguments->take,
             "primary or mirror: where the files are not as the last run has left them, all get "
             "the contents of this one")
      .one_of({"primary", "mirror"});
  run.option("command", arguments->command, "the program and its arguments, after --")
      .required()
      .may_be_empty();
  run.does([arguments] { return run_mojim(*arguments); });

  harness::Command& read =
      mojim.subcommand("read",
                       "Starts a program that reads a copy, also during a run: "
                       "it waits while a sync point is applied");
  const auto reads = std::make_shared<ReadArguments>();
  read.option("file", reads->file, "the copy: a --mirror or --backup of a run").required();
  read.option("command", reads->command, "the program and its arguments, after --")
      .required()
      .may_be_empty();
  read.does([reads] { return read_copy(*reads); });

  harness::Command& recover_command = mojim.subcommand(
      "recover", "Completes what had arrived at the copies, after perdura mojim run was killed");
  add_cluster(recover_command, *arguments);
  recover_command.does([arguments] { return recover_copies(*arguments); });

  const auto exit_code = [](bool has_served) {
    return has_served ? harness::ExitCode::done : harness::ExitCode::failed;
  };
  // Processes of `run`, which get everything else from their environment.
  harness::Command& primary = mojim.subcommand("primary", "The node of the programs' file");
  primary.hidden();
  const auto told = std::make_shared<int>();
  const auto calls = std::make_shared<int>();
  primary.option("descriptor", *told, "a pipe: to which it reports that it serves").required();
  primary.option("calls", *calls, "a socket: system calls of programs that it is to look at")
      .required();
  primary.does([told, calls, exit_code] {
    return exit_code(preload::serve_and_report(*told, [&](const std::function<void()>& serves) {
      preload::serve_primary(Cluster::from_environment(), *calls, serves);
    }));
  });

  harness::Command& copy = mojim.subcommand("copy", "A node that has a copy");
  copy.hidden();
  const auto node = std::make_shared<NodeId>();
  const auto said = std::make_shared<int>();
  const auto life = std::make_shared<int>();
  copy.option("node", *node).required();
  copy.option("descriptor", *said, "a pipe: to which it reports that it serves").required();
  copy.option("life", *life, "a pipe: this process ends when nobody has its other end any more")
      .required();
  copy.does([node, said, life, exit_code] {
    return exit_code(preload::serve_and_report(*said, [&](const std::function<void()>& serves) {
      preload::serve_copy(Cluster::from_environment(), *node, *life, serves);
    }));
  });
}

}  // namespace perdura::program
