// perdura crash: explores what a power failure may do to a method of remote persistence or to a
// system.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "explore/schedules.h"
#include "explore/what_fails.h"
#include "harness/run/long_work.h"
#include "harness/text/whole_file.h"
#include "methods/proof.h"
#include "platform/base/error.h"
#include "platform/base/json.h"
#include "platform/base/path_kind.h"
#include "platform/base/suggestion.h"
#include "program/crash_arguments.h"
#include "systems/registry/registry.h"

namespace perdura::program {
namespace {

using methods::Configuration;
using methods::Correctness;
using methods::Method;
using methods::Proof;
using methods::StepProof;

// Exploring more crash states than this would take more than some seconds; then random samples are
// tried at each crash point instead.
constexpr std::uint64_t kFeasible = 10'000'000;
constexpr std::uint64_t kUsualSamples = 1000;

// The name of a known method always means that method, even if a file has the same name.
Method load_method(const std::string& target) {
  const auto& known = methods::methods();
  if (std::any_of(known.begin(), known.end(),
                  [&](const Method& method) { return method.name == target; })) {
    return methods::find_method(target);
  }
  if (const PathKind kind = kind_of(target); kind != PathKind::file) {
    std::vector<std::string_view> names;
    for (const Method& method : known) names.push_back(method.name);
    for (const auto& system : systems::all_systems()) names.push_back(system.info.name);
    if (kind != PathKind::nothing) {
      throw UsageError(fmt::format("crash: {}: {}", target, not_a_file(target)));
    }
    const std::string_view meant = nearest(target, names);
    throw UsageError(
        fmt::format("crash: '{}' is no method, no system and no file{}; perdura list names those "
                    "that there are",
                    target, meant.empty() ? "" : fmt::format(" (did you mean '{}'?)", meant)));
  }
  const auto text = harness::read_whole(target);
  if (!text) throw UsageError(fmt::format("crash: {}: {}", target, not_a_file(target)));
  try {
    return methods::read_method(*text, std::filesystem::path(target).stem().string());
  } catch (const pmem::ProgramError& error) {
    throw UsageError(fmt::format("crash {}: {}", target, error.what()));
  }
}

// The crash schedules of all services, without duplicate names.
std::vector<services::CrashSchedule> all_schedules() {
  std::vector<services::CrashSchedule> all;
  for (const services::Service* service : systems::all_services()) {
    for (const services::CrashSchedule& schedule : service->schedules()) {
      const bool known = std::any_of(
          all.begin(), all.end(), [&](const auto& other) { return other.name == schedule.name; });
      if (!known) all.push_back(schedule);
    }
  }
  return all;
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const services::CrashSchedule& schedule : all_schedules()) names.emplace_back(schedule.name);
  return names;
}

// Text for the help, such as "; equal-writers: both clients ..., slow-writer: one writes ...".
std::string schedules() {
  std::string text;
  for (const services::CrashSchedule& schedule : all_schedules()) {
    text += fmt::format("{} {}: {}", text.empty() ? ";" : ",", schedule.name, schedule.what);
  }
  return text;
}

Json as_json(const Method& method, const Configuration& configuration, const Proof& proof) {
  Json result{
      {"method", method.name},
      {"domain", to_string(configuration.model.domain)},
      {"ddio", configuration.model.ddio},
      {"receive_buffers", configuration.receive_buffers == pmem::Medium::pm ? "pm" : "dram"},
      {"transport", to_string(configuration.model.transport)},
      {"verdict", to_string(proof.correctness)},
      {"moments", proof.instants},
      {"images", proof.images}};
  result["breaches"] = Json::array();
  for (const auto breach : proof.breaches) result["breaches"].push_back(to_string(breach));
  if (!proof.broken.empty()) result["broken"] = proof.broken;
  if (!proof.trace.empty()) result["trace"] = proof.trace;
  return result;
}

Json steps_as_json(const Method& method, const Configuration& configuration,
                   const methods::ProofOptions& options) {
  Json result = Json::array();
  for (const StepProof& proof : prove_steps(method, configuration, options)) {
    const pmem::Agent& agent = method.program.agents[proof.agent];
    result.push_back({{"agent", to_string(method.program, agent)},
                      {"step", to_string(method.program, agent.steps[proof.step])},
                      {"without", summary(proof.without)}});
  }
  return result;
}

void print_steps(const Method& method, const std::vector<methods::StepProof>& proofs) {
  for (const StepProof& proof : proofs) {
    const pmem::Agent& agent = method.program.agents[proof.agent];
    fmt::print("  without {:<10} {:<18} {}\n", to_string(method.program, agent),
               to_string(method.program, agent.steps[proof.step]),
               proof.without.correctness != Correctness::right ? summary(proof.without)
               : proof.without.too_many                        ? "right in all that was tried, too"
                                        : "right, too: the step is not needed");
  }
}

std::vector<std::string> failure_kinds() {
  return {std::begin(explore::kFailureKinds), std::end(explore::kFailureKinds)};
}

harness::ExitCode crash(const CrashArguments& arguments, const CommandContext& context) {
  if (!context.ranks.is_root()) return harness::ExitCode::done;
  if (arguments.replay) return replay_finding(arguments, context);
  if (arguments.target.empty()) {
    throw UsageError("crash: name a method, a file with the steps of one, or a system");
  }
  if (arguments.exhaustive && arguments.samples > 0) {
    throw UsageError("crash: --exhaustive and --samples exclude each other");
  }
  if (is_system(arguments.target)) {
    if (arguments.sequences) return crash_sequences(arguments, context);
    if (arguments.stride && !arguments.strategy) {
      throw UsageError("crash: --stride is for --failures 2 and for --sequences");
    }
    return arguments.strategy ? crash_schedules(arguments, context)
                              : crash_system(arguments, context);
  }
  if (arguments.from || arguments.to) {
    throw UsageError("crash: --from and --to are for systems; a method is explored as a whole");
  }
  if (!arguments.parameters.empty() || arguments.profile) {
    throw UsageError("crash: --parameter and --profile are for systems; a method has neither");
  }
  if (arguments.schedule) {
    throw UsageError("crash: --schedule is for systems; a method has one order of steps");
  }
  if (arguments.failing) {
    throw UsageError("crash: --failing is for systems; a method has one responder");
  }
  if (arguments.failure) {
    throw UsageError("crash: --failure is for systems; of a method's responder the power fails");
  }
  if (arguments.images || arguments.threads > 0) {
    throw UsageError("crash: --images and --threads are for systems; a method has --exhaustive");
  }
  if (arguments.diagram) {
    throw UsageError("crash: --diagram is for systems; of a method all steps are printed");
  }
  if (arguments.persistence != "paper") {
    throw UsageError("crash: --persistence is for systems; a method is what it is");
  }
  if (arguments.sequences) {
    throw UsageError("crash: --sequences is for systems; a method has one sequence of steps");
  }
  if (arguments.stride) throw UsageError("crash: --stride is for systems");
  if (arguments.strategy) {
    throw UsageError("crash: --strategy is for systems; a method's orders are all explored");
  }
  const Method method = load_method(arguments.target);
  methods::ProofOptions options;
  options.sampling = {arguments.samples, arguments.seed, arguments.exhaustive ? 0 : kFeasible, {}};
  Json results = Json::array();
  bool all_right = true;
  const Proof* shown_first = nullptr;
  std::vector<Proof> proofs;
  const auto configurations = arguments.configuration.matching();
  proofs.reserve(configurations.size());
  std::size_t width = 0;
  for (const Configuration& configuration : configurations) {
    width = std::max(width, to_string(configuration).size() + 1);
  }
  harness::LongWork work(configurations.size(), context.ranks);
  for (const Configuration& configuration : configurations) {
    const std::string name = to_string(configuration);
    work.begin(name);
    options.sampling.progress = [&](double share) { work.within(name, share); };
    proofs.push_back(prove(method, configuration, options));
    const bool sampled = proofs.back().too_many || arguments.samples > 0;
    if (proofs.back().too_many) {
      methods::ProofOptions fewer = options;
      fewer.sampling = {kUsualSamples, arguments.seed, 0, options.sampling.progress};
      proofs.back() = prove(method, configuration, fewer);
    }
    const Proof& proof = proofs.back();
    all_right = all_right && proof.correctness == Correctness::right;
    if (arguments.as_json) {
      Json& result = results.push_back(as_json(method, configuration, proof));
      result["sampled"] = sampled;
      if (arguments.steps) result["steps"] = steps_as_json(method, configuration, options);
      work.skip();
      continue;
    }
    const std::vector<StepProof> steps =
        arguments.steps ? prove_steps(method, configuration, options) : std::vector<StepProof>{};
    work.skip();
    fmt::print("{} on {:<{}} {:<26} {} crash points, {} images{}\n", method.name,
               to_string(configuration) + ":", width, summary(proof), proof.instants, proof.images,
               sampled ? fmt::format(", sampled, seed {}", arguments.seed) : "");
    print_steps(method, steps);
    std::fflush(stdout);
    if (proof.correctness != Correctness::right && shown_first == nullptr) shown_first = &proof;
  }
  if (arguments.as_json) {
    fmt::print("{}\n", results.dump(2));
  } else if (shown_first != nullptr) {
    const auto& configuration =
        configurations[static_cast<std::size_t>(shown_first - proofs.data())];
    fmt::print("\non {}: {}\n{}", to_string(configuration), shown_first->broken,
               shown_first->trace);
  }
  return all_right ? harness::ExitCode::done : harness::ExitCode::failed;
}

// The file of a finding says what it was found with. Another option would not change that, and who
// gave it would take the answer for one about something else.
void check_beside_replay(const harness::Command& command) {
  for (const harness::Option& option : command.options()) {
    const std::vector<std::string> names = option.long_names();
    if (!option.is_given() || names.empty()) continue;
    if (names.front() == "--replay" || names.front() == "--diagram") continue;
    throw UsageError(
        fmt::format("crash: --replay excludes {}: the file says what to repeat", names.front()));
  }
}

}  // namespace

void add_crash(harness::Command& program, CommandContext& context) {
  const auto arguments = std::make_shared<CrashArguments>();
  harness::Command& command = program.subcommand(
      "crash", "Explores what a power failure leaves; ends with 1 if anything can be lost");
  const harness::Option target =
      command.option("target", arguments->target,
                     "A method of remote persistence, a file with the steps of one, or a system");
  arguments->configuration.add_to(command);
  command.flag("--exhaustive", arguments->exhaustive,
               "Explores every image at every crash point, however many there are");
  command
      .option("--samples", arguments->samples,
              "Explores this many random images at every crash point instead of all")
      .whole_number(1, 1'000'000'000);
  command.option("--seed", arguments->seed, "Seed of the random images")
      .whole_number(0, ~std::uint64_t{0});
  command.flag("--steps", arguments->steps, "Explores the method without each of its steps, too");
  command.option("--parameter", arguments->parameters, "A parameter of the system, NAME=VALUE");
  command
      .option("--from", arguments->from,
              "First crash point to try in each history of a system: continues an exploration")
      .whole_number(0, ~std::uint64_t{0});
  command
      .option("--to", arguments->to, "Last crash point to try; the same as --from replays a loss")
      .whole_number(0, ~std::uint64_t{0});
  command
      .option("--persistence", arguments->persistence,
              "How a system's puts persist: as in its paper, or so that they are durable "
              "when they are acknowledged")
      .one_of({"paper", "correct"});
  command.option("--schedule", arguments->schedule, "Only this history of a system" + schedules())
      .one_of(schedule_names());
  command
      .option("--failing", arguments->failing,
              "How many of a system's servers lose their power at once (default: all)")
      .whole_number(1, 1024);
  command
      .option("--failure", arguments->failure,
              "What fails of a system: its servers' power (default) or processes, a client, or "
              "the connection of a client")
      .one_of(failure_kinds());
  command.option("--profile", arguments->profile,
                 "Testbed on whose model the system runs (default: erda-connectx3)");
  command
      .option("--images", arguments->images,
              "For a system: recovers from this many images at every crash point, or from all, "
              "without repeating what was before; each covers all images that look the same "
              "to it")
      .whole_number_or(1, 1'000'000'000, "all");
  command
      .option("-j,--threads", arguments->threads,
              "With --images, how many threads (default: one for each processor)")
      .whole_number(1, 1024);
  command
      .option("--sequences", arguments->sequences,
              "Explores every sequence of so many operations that the system's service has, "
              "with a power failure at every crash point of the last one; --from, --to and "
              "--stride count sequences")
      .whole_number(1, 4);
  const harness::Option strategy =
      command
          .option(
              "--strategy", arguments->strategy,
              "Explores the schedules of small random histories of a system, with a power failure "
              "wherever it makes a difference. exhaustive: all schedules; bounded: all with at "
              "most --delays late messages; pct: random ones, with the probability of finding a "
              "bug of --depth; random")
          .one_of(std::vector<std::string>(std::begin(explore::kStrategies),
                                           std::end(explore::kStrategies)));
  command
      .option("--delays", arguments->deviations,
              "For --strategy bounded: the most deviations in a schedule (default: 1)")
      .needs(strategy)
      .whole_number(0, 16);
  command
      .option("--depth", arguments->depth,
              "For --strategy pct: one more than the late messages that a bug needs (default: 2)")
      .needs(strategy)
      .whole_number(1, 16);
  command
      .option("--histories", arguments->histories,
              "How many histories, whose seeds count from --seed (default: 20)")
      .needs(strategy)
      .whole_number(1, 1'000'000'000);
  command
      .option("--schedules", arguments->schedules,
              "At most so many schedules of each history (default: all; of pct and random "
              "100)")
      .needs(strategy)
      .whole_number(1, 1'000'000'000);
  command
      .flag("--late-placements", arguments->late_placements,
            "For --strategy: what a device has received may reach memory late, too")
      .needs(strategy);
  command
      .option("--expect", arguments->expected,
              "For --strategy: looks for a run that keeps less than this level (default: "
              "durable)")
      .needs(strategy)
      .one_of({"atomic", "ordered", "durable-writes", "durable"});
  command
      .option("--failures", arguments->failures,
              "For --strategy: how many failures there are, one after the other (default: 1, of "
              "the power of all servers). 2: each of all servers or of one alone, which is back "
              "at once or after 100 us")
      .needs(strategy)
      .whole_number(1, 2);
  command
      .option("--stride", arguments->stride,
              "With --failures 2: tries one of so many crash points for each of the two; with "
              "--sequences: one of so many sequences (default: all)")
      .whole_number(1, 1'000'000'000);
  command
      .option("-o,--out", arguments->folder,
              "Folder for what a strategy finds (default: out/crash)")
      .needs(strategy);
  command
      .option("--replay", arguments->replay,
              "Repeats what is in this file of perdura soak or of a strategy")
      .excludes(target);
  command.option("--diagram", arguments->diagram,
                 "File for a space-time diagram (SVG) of the first loss of a system");
  command.flag("--json", arguments->as_json, "Writes JSON");
  command.does([arguments, &command, &context] {
    if (arguments->replay) check_beside_replay(command);
    return crash(*arguments, context);
  });
}

}  // namespace perdura::program
