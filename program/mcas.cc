// perdura mcas serve and check: serves applications the MCAS shards that a configuration file
// describes (docs/library.md).
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

#include "library/perdura_objects.h"
#include "platform/base/error.h"
#include "program/commands.h"

namespace perdura::program {

namespace {

struct McasArguments {
  std::string file;
  std::vector<std::string> shards;
};

// The server that the signal handler stops; null while none runs.
std::atomic<mcas::Server*> served{nullptr};
void stop_serving(int) {
  if (mcas::Server* const server = served.load()) server->stop();
}

// errno of the line that could not be written.
std::atomic<int> unwritten{0};
// True if writing a line to standard output would not block: the pipe has room, or writing fails at
// once.
bool is_read() {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  return poll(&output, 1, 0) != 0;
}

// Prints a line of a shard's thread at once, since the process that started this one may be waiting
// for it. If it cannot be written, the shards are stopped, so that the failure is noticed. If the
// pipe is full because nobody reads it, the line is dropped: a thread that waited for a reader
// would serve no requests meanwhile.
void say(const std::string& line) {
  static std::mutex mutex;
  static std::uint64_t left_out = 0;
  const std::scoped_lock lock(mutex);
  if (!std::cout) return;
  if (!is_read()) {
    ++left_out;
    return;
  }
  errno = 0;
  if (left_out > 0) std::cout << fmt::format("lines left out, since nobody read: {}\n", left_out);
  left_out = 0;
  std::cout << line << std::endl;
  if (std::cout) return;
  unwritten = errno;
  stop_serving(0);
}

std::string_view in_words(mcas::ClusterEvent::What what) {
  switch (what) {
    case mcas::ClusterEvent::What::joined:
      return "has joined";
    case mcas::ClusterEvent::What::left:
      return "has left";
    case mcas::ClusterEvent::What::failed:
      return "has failed";
  }
  return "";
}

std::unique_ptr<mcas::Server> server_of(const McasArguments& arguments) {
  mcas::ServerOptions options{.file = arguments.file, .shards = arguments.shards};
  options.on_serving = [](const std::string& shard) { say(fmt::format("{} serves", shard)); };
  options.on_event = [](const std::string& shard, const mcas::ClusterEvent& event) {
    say(fmt::format("{}: {} {}", shard, event.shard, in_words(event.what)));
  };
  try {
    return std::make_unique<mcas::Server>(options);
  } catch (const std::invalid_argument& problem) {
    throw UsageError(problem.what());
  }
}

harness::ExitCode serve(const McasArguments& arguments) {
  const std::unique_ptr<mcas::Server> server = server_of(arguments);
  served = server.get();
  std::signal(SIGTERM, stop_serving);
  std::signal(SIGINT, stop_serving);
  server->run();
  // A signal that arrives from now on has its default effect.
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGINT, SIG_DFL);
  served = nullptr;
  if (!std::cout) throw std::system_error(unwritten, std::generic_category());
  return harness::ExitCode::done;
}

harness::ExitCode check(const McasArguments& arguments) {
  try {
    const mcas::ShardList list = mcas::Server::check(arguments.file);
    for (const mcas::Shard& shard : list.shards) {
      std::cout << fmt::format("{}: shard {} of the job '{}'{}\n", shard.name, shard.node, list.job,
                               shard.address.empty() ? "" : ", at " + shard.address);
    }
    // Everything that can be known only by opening, or waiting for, resources that may be in use.
    std::cout << "not checked, as only serving tells: the RDMA device, numa_node, names of hosts, "
                 "what the "
                 "memory holds, what plugins take, whether shards are served already\n";
  } catch (const std::invalid_argument& problem) {
    throw UsageError(problem.what());
  }
  return harness::ExitCode::done;
}

}  // namespace

void add_mcas(harness::Command& program, CommandContext&) {
  harness::Command& mcas = program.subcommand("mcas", "Serves shards of MCAS to applications");
  mcas.require_subcommand();
  const auto arguments = std::make_shared<McasArguments>();

  harness::Command& serve_command =
      mcas.subcommand("serve", "Serves the shards of a configuration file until SIGTERM or SIGINT");
  serve_command.option("config", arguments->file, "the file, in TOML").required();
  serve_command.option("--shard", arguments->shards, "one that this process serves; default: all")
      .one_value_at_a_time();
  serve_command.does([arguments] { return serve(*arguments); });

  harness::Command& check_command =
      mcas.subcommand("check", "Says what is wrong with a configuration file, or lists its shards");
  check_command.option("config", arguments->file, "the file, in TOML").required();
  check_command.does([arguments] { return check(*arguments); });
}

}  // namespace perdura::program
