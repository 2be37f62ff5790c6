// perdura advise: which method of remote persistence to use on a responder, and why.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "bench/log/expected_latency.h"
#include "bench/perdura/commands.h"
#include "bench/perdura/configuration_options.h"
#include "bench/perdura/whole_number.h"
#include "platform/error.h"
#include "systems/persistence/chooser.h"
#include "systems/persistence/detection.h"

namespace perdura::harness {
namespace {

using nlohmann::json;
using persistence::Advice;
using persistence::Choice;

// Larger ones are made of several: no method differs by more than their transfer.
constexpr Bytes kLargestUpdate = 16 * MiB;

struct AdviseArguments {
  ConfigurationOptions configuration;
  std::string update = "single";
  std::optional<std::string> operation;
  std::optional<Bytes> second_size;
  persistence::UpdateNeeds needs;
  std::optional<bool> flush;
  std::optional<bool> flush_persistence;
  std::optional<bool> atomic_write;
  bool one_sided = false;
  bool no_replay = false;
  std::string profile = "remote-log-connectx4";
  bool as_json = false;
};

// A property of the responder, and how it became known.
struct Property {
  std::string name;
  std::string value;  // "unknown" if it is
  std::string reason;
};

// Completes what was not given by what Linux tells.
std::vector<Property> complete(ConfigurationOptions& options, const persistence::Detection& found) {
  std::vector<Property> properties;
  const auto settle = [&](const char* name, std::optional<std::string>& option,
                          const std::optional<std::string>& detected, const std::string& reason) {
    if (option) {
      properties.push_back({name, *option, "given"});
    } else if (detected) {
      option = detected;
      properties.push_back({name, *detected, reason});
    } else {
      properties.push_back({name, "unknown", reason});
    }
  };
  const auto text = [](const auto& value, const auto& shown) {
    return value ? std::optional<std::string>(shown(*value)) : std::nullopt;
  };
  settle("domain", options.domain,
         text(found.domain.value, [](auto domain) { return std::string(to_string(domain)); }),
         found.domain.reason);
  settle("ddio", options.ddio,
         text(found.ddio.value, [](bool on) { return std::string(on ? "on" : "off"); }),
         found.ddio.reason);
  settle("receive-buffers", options.receive_buffers, std::nullopt,
         "where a program places them is its own choice");
  settle("transport", options.transport,
         text(found.transport.value,
              [](auto transport) {
                return std::string(transport == pmem::Transport::iwarp ? "iwarp" : "ib");
              }),
         found.transport.reason);
  return properties;
}

const char* yes_or_no(bool value) { return value ? "yes" : "no"; }

// What was given of the devices' features, else what is detected or taken for granted.
persistence::DeviceFeatures settle_features(const AdviseArguments& given,
                                            const persistence::Detection& found,
                                            std::vector<Property>& properties) {
  persistence::DeviceFeatures features = persistence::usable_features(found);
  const auto settle = [&](const char* name, const std::optional<bool>& option,
                          const persistence::Detected<bool>& detected, bool& feature) {
    if (option) {
      feature = *option;
      properties.push_back({name, yes_or_no(feature), "given"});
    } else if (detected.value) {
      properties.push_back({name, yes_or_no(feature), detected.reason});
    } else {
      properties.push_back(
          {name, "unknown",
           fmt::format("{}; taken to be {}", detected.reason, feature ? "there" : "missing")});
    }
  };
  settle("flush", given.flush, found.flush, features.flush);
  settle("flush-persistence", given.flush_persistence, found.flush_persistence,
         features.flush_persistence);
  settle("atomic-write", given.atomic_write, found.atomic_write, features.atomic_write);
  return features;
}

// What no method depends on, and whoever places its data wants to know.
void add_dax(const persistence::Detection& found, std::vector<Property>& properties) {
  const auto add = [&](const char* name, const persistence::Detected<bool>& detected) {
    properties.push_back(
        {name, detected.value ? yes_or_no(*detected.value) : "unknown", detected.reason});
  };
  add("device-dax", found.device_dax);
  add("file-system-dax", found.file_system_dax);
}

json as_json(const Choice& choice) {
  json steps = json::array();
  std::size_t i = 0;
  for (const pmem::Agent& agent : choice.method.program.agents) {
    for (const pmem::Step& step : agent.steps) {
      steps.push_back({{"agent", to_string(choice.method.program, agent)},
                       {"step", to_string(choice.method.program, step)},
                       {"reason", choice.reasons[i++]}});
    }
  }
  json result{{"method", choice.method.name}, {"wasteful", choice.wasteful}, {"steps", steps}};
  result["expected_us"] = to_microseconds(*choice.expected);
  return result;
}

void print(const std::vector<Property>& properties, const Advice& advice,
           const std::string& profile) {
  for (const Property& property : properties) {
    fmt::print("{:<17} {:<8} {}\n", property.name, property.value, property.reason);
  }
  const Choice& best = advice.choices.front();
  fmt::print("\n{}", best.method.name);
  fmt::print(", {:.2f} us on the model {}\n", to_microseconds(*best.expected), profile);
  std::size_t i = 0;
  for (const pmem::Agent& agent : best.method.program.agents) {
    for (const pmem::Step& step : agent.steps) {
      fmt::print("  {:<10} {:<20} {}\n", to_string(best.method.program, agent),
                 to_string(best.method.program, step), best.reasons[i++]);
    }
  }
  if (advice.choices.size() > 1) fmt::print("\nalso right\n");
  for (std::size_t other = 1; other < advice.choices.size(); ++other) {
    const Choice& choice = advice.choices[other];
    fmt::print("  {:<26}{:.2f} us{}\n", choice.method.name, to_microseconds(*choice.expected),
               choice.wasteful ? ", with steps that are not needed here" : "");
  }
  if (!advice.refusals.empty()) fmt::print("\nnot here\n");
  for (const persistence::Refusal& refusal : advice.refusals) {
    fmt::print("  {:<26}{}\n", refusal.method, refusal.reason);
  }
}

ExitCode advise(AdviseArguments arguments, const CommandContext& context) {
  if (!context.ranks.is_root()) return ExitCode::done;
  persistence::UpdateNeeds& needs = arguments.needs;
  needs.update =
      arguments.update == "ordered" ? persistence::Update::ordered : persistence::Update::single;
  for (const auto carrier : persistence::kCarriers) {
    if (arguments.operation && *arguments.operation == to_string(carrier)) needs.carrier = carrier;
  }
  if (arguments.second_size && needs.update == persistence::Update::single) {
    throw UsageError("advise: --second-size is for --update ordered; a single update has one size");
  }
  needs.second_size = arguments.second_size.value_or(needs.second_size);
  needs.responder_cpu = !arguments.one_sided;
  needs.replay = !arguments.no_replay;
  const persistence::Detection found = persistence::detect();
  std::vector<Property> properties = complete(arguments.configuration, found);
  const persistence::DeviceFeatures features = settle_features(arguments, found, properties);
  add_dax(found, properties);
  const auto configurations = arguments.configuration.matching();
  const sim::Profile profile = sim::load_profile(
      context.locations.find(FileKind::profile, {arguments.profile, "--profile"}).string());
  // What is not known of the responder does not change a method's steps, and its time hardly.
  const auto cost = [&](const persistence::Method& method) -> std::optional<Picoseconds> {
    return bench::expected_latency(method, profile, configurations.front(), needs, features);
  };
  const Advice advice = persistence::advise(configurations, needs, features, cost);
  if (advice.choices.empty()) {
    throw UsageError(
        fmt::format("advise: {}", persistence::why_nothing(configurations, needs, advice)));
  }
  if (!arguments.as_json) {
    print(properties, advice, profile.name);
    return ExitCode::done;
  }
  json result{
      {"configuration", json::array()}, {"choices", json::array()}, {"refused", json::array()}};
  for (const Property& property : properties) {
    result["configuration"].push_back(
        {{"name", property.name}, {"value", property.value}, {"reason", property.reason}});
  }
  for (const Choice& choice : advice.choices) result["choices"].push_back(as_json(choice));
  for (const persistence::Refusal& refusal : advice.refusals) {
    result["refused"].push_back({{"method", refusal.method}, {"reason", refusal.reason}});
  }
  fmt::print("{}\n", result.dump(2));
  return ExitCode::done;
}

}  // namespace

void add_advise(CLI::App& app, CommandContext& context, Action& action) {
  const auto arguments = std::make_shared<AdviseArguments>();
  CLI::App* command = app.add_subcommand(
      "advise",
      "Chooses the method of remote persistence for a responder; what is not given is "
      "detected, as if this machine were it");
  arguments->configuration.add_to(*command);
  command->add_option("--update", arguments->update, "One update, or two in order")
      ->check(CLI::IsMember({"single", "ordered"}));
  command->add_option("--operation", arguments->operation, "What carries the update")
      ->check(CLI::IsMember({"write", "write-imm", "send"}));
  command->add_option("--size", arguments->needs.size, "Bytes of the update")
      ->check(whole_number(1, kLargestUpdate));
  command->add_option("--second-size", arguments->second_size, "Bytes of the second of two")
      ->check(whole_number(1, kLargestUpdate));
  command->add_flag("--one-sided", arguments->one_sided,
                    "The responder's CPU must not take part before the acknowledgment");
  command->add_flag("--no-replay", arguments->no_replay,
                    "Recovery cannot make sense of messages in receive buffers");
  // CLI11 counts a negated flag down.
  const auto add_feature = [&](const char* names, std::optional<bool>& feature, const char* help) {
    command->add_flag_function(
        names, [&feature](std::int64_t count) { feature = count > 0; }, help);
  };
  add_feature("--flush,!--no-flush", arguments->flush,
              "Whether both devices have FLUSH; without it, READ emulates it");
  add_feature("--flush-persistence,!--no-flush-persistence", arguments->flush_persistence,
              "Whether both devices have FLUSH for persistence");
  add_feature("--atomic-write,!--no-atomic-write", arguments->atomic_write,
              "Whether both devices have ATOMIC WRITE");
  command->add_option(
      "--profile", arguments->profile,
      "Testbed on whose model the methods are timed (default: remote-log-connectx4)");
  command->add_flag("--json", arguments->as_json, "Writes JSON");
  command->callback([arguments, &context, &action] {
    action = [arguments, &context] { return advise(*arguments, context); };
  });
}

}  // namespace perdura::harness
