// perdura crash METHOD: explores what a power failure may do to a method of remote persistence.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

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

// A target that does not exist may be mistyped: returns the file beside it, the method or the system
// whose name is nearest; "" if none is near.
std::string meant_by(const std::string& target) {
  const std::filesystem::path path(target);
  const std::filesystem::path folder = path.parent_path();
  std::vector<std::string> files;
  std::error_code unreadable;
  for (const auto& file : names_in(folder.empty() ? "." : folder, unreadable)) {
    if (kind_of(file) == PathKind::file) files.push_back((folder / file.filename()).string());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string_view> names;
  for (const Method& method : methods::methods()) names.push_back(method.name);
  for (const auto& system : systems::all_systems()) names.push_back(system.info.name);
  names.insert(names.end(), files.begin(), files.end());
  return std::string(nearest(target, names));
}

// crash.cc refuses a name that is also a file's.
Method load_method(const std::string& target) {
  const auto& known = methods::methods();
  if (std::any_of(known.begin(), known.end(),
                  [&](const Method& method) { return method.name == target; })) {
    return methods::find_method(target);
  }
  if (const PathKind kind = kind_of(target); kind != PathKind::file) {
    if (kind != PathKind::nothing) {
      throw UsageError(fmt::format("crash: {}: {}", target, not_a_file(target)));
    }
    const std::string meant = meant_by(target);
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
               to_text(method.program, agent, agent.steps[proof.step]),
               proof.without.correctness != Correctness::right ? summary(proof.without)
               : proof.without.too_many                        ? "right in all that was tried, too"
                                        : "right, too: the step is not needed");
  }
}

// The command that names the methods that lose nothing there. The step that is missing in a wrong
// method is not known: several steps may mend it.
std::string advice_on(const Method& method, const Configuration& configuration) {
  const bool is_single = method.update == methods::Update::single;
  return fmt::format(
      "perdura advise --domain {} --ddio {} --receive-buffers {} --transport {}{} names methods "
      "that are right there",
      to_string(configuration.model.domain), configuration.model.ddio ? "on" : "off",
      configuration.receive_buffers == pmem::Medium::pm ? "pm" : "dram",
      configuration.model.transport == pmem::Transport::iwarp ? "iwarp" : "ib",
      is_single ? "" : fmt::format(" --update {}", to_string(method.update)));
}

}  // namespace

harness::ExitCode crash_method(const CrashArguments& arguments, const CommandContext& context) {
  const Method method = load_method(arguments.target);
  methods::ProofOptions options;
  // Without --images all images are explored if that is feasible; with a number, as many random ones.
  const std::uint64_t samples = images_of(arguments, 0);
  const bool all = arguments.images && samples == 0;
  options.sampling = {samples, arguments.seed, all ? 0 : kFeasible, {}};
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
    const bool sampled = proofs.back().too_many || samples > 0;
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
    fmt::print("\n{}\n", advice_on(method, configuration));
  }
  return all_right ? harness::ExitCode::done : harness::ExitCode::failed;
}

}  // namespace perdura::program
