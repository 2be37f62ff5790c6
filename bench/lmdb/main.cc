// perdura-lmdb: a YCSB client on a database of LMDB. It knows nothing of replication; the driver
// `lmdb` starts it through perdura mojim run, like any other program.
//
//   perdura-lmdb run --file a.db --size 64MiB --workload workloads/workloada
//   perdura-lmdb check --file b.db --size 64MiB --workload workloads/workloada
#include <fmt/format.h>
#include <unistd.h>

#include <barrier>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "bench/lmdb/client.h"
#include "bench/lmdb/database.h"
#include "bench/lmdb/result.h"
#include "bench/ycsb/workload_spec.h"
#include "harness/program/command.h"
#include "harness/program/command_line.h"
#include "harness/program/program_start.h"
#include "platform/base/error.h"
#include "platform/base/limits.h"
#include "platform/host/os_thread.h"

namespace perdura::bench::lmdb {
namespace {

struct Arguments {
  Database::Options database;
  std::string workload;
  ycsb::Overrides overrides;
  std::uint64_t warmup = 0;
  std::uint32_t clients = 1;
  std::uint64_t seed = 1;
  int results = -1;  // descriptors (result.h); -1: no parent listens
  int answers = -1;
};

ycsb::WorkloadSpec spec_of(const Arguments& arguments) {
  auto spec = ycsb::workload_from_file(arguments.workload, arguments.overrides);
  if (!spec) throw UsageError(spec.error().message);
  return *spec;
}

void say(const Arguments& arguments, const void* data, std::size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = write(arguments.results, bytes, size);
    if (written <= 0) throw PlatformError("nobody waits for the result");
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
}

void tell(const Arguments& arguments, char what) {
  if (arguments.results < 0) return;
  say(arguments, &what, 1);
  char answer = 0;
  if (read(arguments.answers, &answer, 1) != 1 || answer != kGoOn) {
    throw PlatformError("nobody waits for the result");
  }
}

void give(const Arguments& arguments, const Result& result) {
  if (arguments.results < 0) {
    std::uint64_t operations = 0;
    for (const auto& [kind, measured] : result.kinds) operations += measured.operations;
    const double seconds = static_cast<double>(result.elapsed.count()) * 1e-12;
    fmt::print("{} operations in {:.3f} s, {:.0f} a second; {} entries\n", operations, seconds,
               static_cast<double>(operations) / seconds, result.entries);
    if (!result.problem.empty()) fmt::print(stderr, "perdura-lmdb: {}\n", result.problem);
    return;
  }
  harness::WordWriter writer;
  visit(writer, result);
  const std::uint64_t count = writer.words().size();
  say(arguments, &kResult, 1);
  say(arguments, &count, sizeof count);
  say(arguments, writer.words().data(), count * sizeof count);
}

Result merged(std::span<const std::unique_ptr<Client>> clients) {
  Result all;
  Time first = Time::max();
  Time last = Time::min();
  for (const auto& client : clients) {
    const Result& own = client->result();
    for (const auto& [kind, measured] : own.kinds) {
      Kind& sum = all.kinds[kind];
      sum.operations += measured.operations;
      sum.errors += measured.errors;
      sum.not_found += measured.not_found;
      sum.latency.merge(measured.latency);
    }
    all.operations_at_work += own.operations_at_work;
    all.failed = all.failed || own.failed;
    if (all.problem.empty()) all.problem = own.problem;
    first = std::min(first, client->first_start());
    last = std::max(last, client->last_end());
  }
  if (first < last) all.elapsed = last - first;
  return all;
}

Result measure(const Arguments& arguments, Database& database, const ycsb::WorkloadSpec& spec) {
  load(database, spec, arguments.seed);
  const std::uint32_t count = arguments.clients;
  Crew crew(count);
  std::vector<std::unique_ptr<Client>> clients(count);
  std::exception_ptr problem;
  std::barrier together(count + 1);
  OsThreads threads(count, [&](std::size_t thread) {
    const auto index = static_cast<std::uint32_t>(thread);
    auto& client = clients[index];
    client = std::make_unique<Client>(database, spec, arguments.seed, index, count);
    client->operate(arguments.warmup, nullptr);
    together.arrive_and_wait();
    together.arrive_and_wait();
    client->operate(spec.operation_count, &crew);
    together.arrive_and_wait();
    together.arrive_and_wait();
  });
  // Goes on even if the parent no longer listens, so that the threads end.
  const auto tell_between = [&](char what) {
    together.arrive_and_wait();
    try {
      tell(arguments, what);
    } catch (...) {
      problem = std::current_exception();
    }
    together.arrive_and_wait();
  };
  tell_between(kBegins);
  tell_between(kEnds);
  threads.join();
  if (problem) std::rethrow_exception(problem);
  Result result = merged(clients);
  const measure::AtWork at_work = crew.at_work(0, result.operations_at_work);
  result.all_begin = at_work.begin;
  result.all_end = at_work.end;
  result.entries = database.entries();
  return result;
}

harness::ExitCode run(const Arguments& arguments) {
  const ycsb::WorkloadSpec spec = spec_of(arguments);
  Result result;
  try {
    Database database(arguments.database);
    result = measure(arguments, database, spec);
  } catch (const Error& error) {  // while loading
    result.problem = fmt::format("loading: {}", problem_text(error));
    result.failed = true;
  }
  give(arguments, result);
  return result.problem.empty() ? harness::ExitCode::done : harness::ExitCode::failed;
}

harness::ExitCode check(Arguments arguments) {
  arguments.database.read_only = true;
  Database database(arguments.database);
  fmt::print("{}\n", checked_entries(database, spec_of(arguments)));
  return harness::ExitCode::done;
}

void add_database(harness::Command& command, Arguments& arguments) {
  command.option("--file", arguments.database.file, "of the database").required();
  command.option("--size", arguments.database.size, "of the file, at the most: 64MiB")
      .required()
      .size_with_unit();
  command.option("--workload", arguments.workload, "a YCSB property file").required();
  command.option("--records", arguments.overrides.record_count, "instead of the file's");
  command.option("--operations", arguments.overrides.operation_count, "instead of the file's");
  command.option("--key-size", arguments.overrides.key_size, "bytes, instead of the file's");
  command.option("--value-size", arguments.overrides.value_size, "bytes, instead of the file's");
}

}  // namespace
}  // namespace perdura::bench::lmdb

int main(int count, char** values) {
  using namespace perdura::bench::lmdb;
  using perdura::harness::Command;
  using perdura::harness::complain;
  using perdura::harness::ExitCode;
  perdura::harness::start_program();
  perdura::harness::Program program("A YCSB client on a database of LMDB", "perdura-lmdb");
  program.require_subcommand();
  Arguments arguments;
  Command& run_command = program.subcommand("run", "Loads a new database and measures");
  add_database(run_command, arguments);
  run_command.flag("--no-sync{false}", arguments.database.syncs, "with MDB_NOSYNC");
  run_command.flag("--no-write-map{false}", arguments.database.write_map,
                   "without MDB_WRITEMAP: pages are written by system calls");
  run_command.option("--warmup", arguments.warmup, "operations before those that count");
  run_command.option("--clients", arguments.clients, "threads").range(1, 64);
  run_command.option("--seed", arguments.seed);
  run_command.option("--results", arguments.results).hidden();
  run_command.option("--answers", arguments.answers).hidden();
  run_command.does([&arguments] { return run(arguments); });
  Command& check_command = program.subcommand(
      "check", "Checks that each entry is what the workload writes, and counts them");
  add_database(check_command, arguments);
  check_command.does([&arguments] { return check(arguments); });
  ExitCode code = ExitCode::failed;
  try {
    code = program.run(count, values);
    perdura::harness::finish_output();
  } catch (const perdura::UsageError& error) {
    code = complain(true, ExitCode::usage, error.what());
  } catch (const std::exception& error) {
    code = complain(true, ExitCode::failed, perdura::problem_text(error));
  }
  return static_cast<int>(code);
}
