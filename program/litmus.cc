// perdura litmus: compares what the fabric's memory model allows and forbids with what platforms
// do.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "harness/run/long_work.h"
#include "platform/base/error.h"
#include "platform/litmus/catalog.h"
#include "platform/litmus/explore.h"
#include "platform/litmus/survey.h"
#include "platform/shm/shm_platform.h"
#include "platform/sim/sim_platform.h"
#include "program/commands.h"
#ifdef PERDURA_HAVE_VERBS
#include "platform/verbs/verbs_platform.h"
#endif

namespace perdura::program {
namespace {

using litmus::Litmus;

struct LitmusArguments {
  std::string text;  // words in the tests' titles
  std::uint64_t runs = 1000;
  std::uint64_t seed = 1;
  std::string platform;  // the only one to run on; empty: all
  bool counts = false;

  bool on(std::string_view name) const { return platform.empty() || platform == name; }
};

litmus::Results run_on(Platform& platform, const Litmus& test, const LitmusArguments& arguments) {
  litmus::RunOptions options;
  options.times = arguments.runs;
  options.seed = arguments.seed;
  options.longest_pause = Microseconds(4);
  return litmus::Run(test, platform, options).finish();
}

litmus::Results run_on_shm(const Litmus& test, const LitmusArguments& arguments) {
  ShmOptions options;
  options.node_count = test.nodes;
  ShmPlatform platform(std::move(options));
  return run_on(platform, test, arguments);
}

// The capabilities of this host's RDMA device; nullopt if verbs is not selected, or if there is no
// device and other platforms are selected, too.
std::optional<fabric::Capabilities> device_of_this_host(const LitmusArguments& arguments) {
  if (!arguments.on("verbs")) return std::nullopt;
#ifdef PERDURA_HAVE_VERBS
  try {
    return fabric::verbs::Device({}).capabilities();
  } catch (const PlatformError&) {
    if (!arguments.platform.empty()) throw;
  }
#else
  if (!arguments.platform.empty()) {
    throw UsageError("litmus: this build has no platform verbs, since libibverbs was not found");
  }
#endif
  return std::nullopt;
}

// Outcome counts on verbs; empty if the device lacks an operation of the test.
std::vector<std::uint64_t> times_on_verbs([[maybe_unused]] const Litmus& test,
                                          [[maybe_unused]] const fabric::Capabilities& device,
                                          [[maybe_unused]] const LitmusArguments& arguments) {
#ifdef PERDURA_HAVE_VERBS
  const bool lacks_flush = test.needs_flush && !device.flush;
  const bool lacks_atomic_write = test.needs_atomic_write && !device.atomic_write;
  if (!lacks_flush && !lacks_atomic_write) {
    VerbsOptions options;
    options.node_count = test.nodes;
    VerbsPlatform platform(std::move(options));
    return times_in(test, run_on(platform, test, arguments));
  }
#endif
  return {};
}

std::vector<litmus::Column> columns_of(const Litmus& test, const sim::Profile& profile,
                                       const std::optional<fabric::Capabilities>& device,
                                       const LitmusArguments& arguments) {
  std::vector<litmus::Column> columns;
  if (arguments.on("sim")) {
    sim::SimPlatform timed(profile, test.nodes);
    columns.push_back({"sim", times_in(test, run_on(timed, test, arguments)), arguments.counts});
    columns.push_back({"sim, every order", times_in(test, litmus::explore(test, profile).results)});
  }
  if (arguments.on("shm")) {
    columns.push_back({"shm", times_in(test, run_on_shm(test, arguments)), arguments.counts});
  }
  if (device) {
    columns.push_back({"verbs", times_on_verbs(test, *device, arguments), arguments.counts});
  }
  return columns;
}

// Describes an observed outcome that contradicts the model; "" if there is none.
std::string contradiction(const Litmus& test, const std::vector<litmus::Column>& columns) {
  for (const litmus::Column& column : columns) {
    if (const litmus::Outcome* const outcome = forbidden_in(test, column.times)) {
      return fmt::format("{} is forbidden and was seen on {}", outcome->text, column.name);
    }
  }
  return {};
}

harness::ExitCode run_litmus(const LitmusArguments& arguments, const CommandContext& context) {
  if (!context.ranks.is_root()) return harness::ExitCode::done;
  sim::Profile profile = sim::load_profile(
      context.locations.find(harness::FileKind::profile, {"erda-connectx3", ""}).string());
  profile.nic.flush = profile.nic.atomic_write = true;
  const std::optional<fabric::Capabilities> device = device_of_this_host(arguments);
  harness::ExitCode code = harness::ExitCode::done;
  bool is_first = true;
  const bool plain = isatty(STDOUT_FILENO) == 1;
  harness::LongWork work(litmus::catalog().size(), context.ranks);
  for (const Litmus& test : litmus::catalog()) {
    if (test.title.find(arguments.text) == std::string::npos) {
      work.skip();
      continue;
    }
    work.begin(test.title);
    const std::vector<litmus::Column> columns = columns_of(test, profile, device, arguments);
    work.skip();
    work.close();
    const bool first = std::exchange(is_first, false);
    if (plain) {
      fmt::print("{}", plain_table(test, columns));
    } else {
      fmt::print("{}{}", first ? table_head(columns) : "", table_rows(test, columns));
    }
    std::fflush(stdout);
    if (const std::string problem = contradiction(test, columns); !problem.empty()) {
      fmt::print(stderr, "perdura: litmus: {}: {}\n", test.title, problem);
      code = harness::ExitCode::failed;
    }
  }
  if (is_first) {
    throw UsageError(fmt::format("litmus: no test's title has '{}'", arguments.text));
  }
  return code;
}

}  // namespace

void add_litmus(harness::Command& program, CommandContext& context) {
  const auto arguments = std::make_shared<LitmusArguments>();
  harness::Command& command = program.subcommand(
      "litmus",
      "Runs the litmus tests of the fabric's memory model on this host, and on its RDMA device");
  command.option("text", arguments->text, "Only tests whose titles have this in them");
  command.option("--runs", arguments->runs, "How often each test runs on sim, shm and verbs")
      .whole_number(1, 1'000'000);
  command.option("--seed", arguments->seed, "Seed of the pauses between steps");
  command.option("--platform", arguments->platform, "Only on this platform; else on all there are")
      .one_of({"sim", "shm", "verbs"});
  command.flag("--counts", arguments->counts,
               "How often each outcome was seen, in place of whether it was");
  command.does([arguments, &context] { return run_litmus(*arguments, context); });
}

}  // namespace perdura::program
