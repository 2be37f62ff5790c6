// perdura advise: which method of remote persistence to use on a responder, and why.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "harness/run/long_work.h"
#include "harness/text/whole_file.h"
#include "methods/chooser.h"
#include "methods/detection.h"
#include "methods/responder_descriptor.h"
#include "platform/base/error.h"
#include "platform/base/json.h"
#include "platform/base/path_kind.h"
#include "program/commands.h"
#include "program/configuration_options.h"
#include "systems/remote_log/expected_latency.h"

namespace perdura::program {
namespace {

namespace fs = std::filesystem;
using methods::Advice;
using methods::Choice;

// Larger updates are split into several of this size; each costs every method the same additional
// transfer time.
constexpr Bytes kLargestUpdate = 16 * MiB;

struct AdviseArguments {
  ConfigurationOptions configuration;
  std::string responder;  // file of a descriptor; empty: this machine
  std::string update = "single";
  std::optional<std::string> operation;
  std::optional<Bytes> second_size;
  methods::UpdateNeeds needs;
  std::optional<bool> flush;
  std::optional<bool> flush_persistence;
  std::optional<bool> atomic_write;
  std::optional<bool> atomics;
  std::optional<std::string> link;
  bool one_sided = false;
  bool no_replay = false;
  std::string profile = "remote-log-connectx4";
  bool as_json = false;
};

// A property of the responder, and its source.
struct Property {
  std::string name;
  std::string value;  // "unknown" if it is not known
  std::string reason;
};

// The known properties of the responder: from the descriptor file that it wrote, or else as Linux
// reports them for this machine.
struct Known {
  methods::ResponderDescriptor responder;
  methods::DeviceFeatures features;
  std::optional<methods::Detection> found;  // not set if a file was given
};

Known known_of_responder(const std::string& file) {
  if (file.empty()) {
    const methods::Detection found = methods::detect();
    return {methods::describe(found), methods::usable_features(found), found};
  }
  if (kind_of(file) != PathKind::file) {
    throw UsageError(fmt::format(
        "advise: --responder {}: {}; 'perdura doctor --json' makes one on the responder", file,
        not_a_file(file)));
  }
  const auto text = harness::read_whole(file);
  if (!text) {
    throw UsageError(fmt::format("advise: --responder {}: {}", file, not_a_file(file)));
  }
  try {
    const auto responder = methods::responder_from_json(*text);
    return {responder, methods::usable_features(responder), std::nullopt};
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("advise: --responder {}: {}", file, error.what()));
  }
}

// Fills in options that the user did not give from the known properties of the responder.
std::vector<Property> complete(ConfigurationOptions& options,
                               const methods::ResponderDescriptor& known) {
  std::vector<Property> properties;
  const auto settle = [&](const char* name, std::optional<std::string>& option,
                          const auto& detected, const auto& shown) {
    if (option) {
      properties.push_back({name, *option, "given"});
    } else if (detected.value) {
      option = std::string(shown(*detected.value));
      properties.push_back({name, *option, detected.reason});
    } else {
      properties.push_back({name, "unknown", detected.reason});
    }
  };
  settle("domain", options.domain, known.domain, [](auto domain) { return to_string(domain); });
  settle("ddio", options.ddio, known.ddio, [](bool on) { return on ? "on" : "off"; });
  settle("receive-buffers", options.receive_buffers, known.receive_buffers,
         [](auto medium) { return medium == pmem::Medium::pm ? "pm" : "dram"; });
  settle("transport", options.transport, known.transport,
         [](auto transport) { return transport == pmem::Transport::iwarp ? "iwarp" : "ib"; });
  return properties;
}

const char* yes_or_no(bool value) { return value ? "yes" : "no"; }

// Determines the devices' features: those that the user gave, or else those that were detected or
// are assumed.
methods::DeviceFeatures settle_features(const AdviseArguments& given, const Known& known,
                                        std::vector<Property>& properties) {
  methods::DeviceFeatures features = known.features;
  const methods::ResponderDescriptor& found = known.responder;
  const auto settle = [&](const char* name, const std::optional<bool>& option,
                          const methods::Detected<bool>& detected, bool& feature) {
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
  if (given.atomics) features.atomics = *given.atomics;
  return features;
}

// Adds properties on which no method depends, but which the user needs in order to place data.
void add_dax(const methods::Detection& found, std::vector<Property>& properties) {
  const auto add = [&](const char* name, const methods::Detected<bool>& detected) {
    properties.push_back(
        {name, detected.value ? yes_or_no(*detected.value) : "unknown", detected.reason});
  };
  add("device-dax", found.device_dax);
  add("file-system-dax", found.file_system_dax);
}

// The operations that the devices must have, besides WRITE, SEND and READ: "atomics".
std::string needs_of(const methods::Method& method) {
  return fabric::missing(method.needs(), {.write_with_immediate = false, .atomics = false});
}

Json as_json(const Choice& choice) {
  Json steps = Json::array();
  std::size_t i = 0;
  for (const pmem::Agent& agent : choice.method.program.agents) {
    for (const pmem::Step& step : agent.steps) {
      steps.push_back({{"agent", methods::name_of(agent)},
                       {"step", to_string(choice.method.program, step)},
                       {"reason", choice.reasons[i++]}});
    }
  }
  Json result{{"method", choice.method.name}, {"wasteful", choice.wasteful}, {"steps", steps}};
  if (choice.method.update == methods::Update::publish) {
    result["readers"] = to_string(choice.method.readers_duty());
    result["marks"] = choice.method.marks();
  }
  result["needs"] = needs_of(choice.method);
  result["expected_us"] = to_microseconds(*choice.expected);
  return result;
}

// Prints pairs of a name and a text in aligned columns.
void print_columns(const std::vector<std::pair<std::string, std::string>>& lines) {
  std::size_t width = 0;
  for (const auto& [name, text] : lines) width = std::max(width, name.size());
  for (const auto& [name, text] : lines) fmt::print("  {:<{}}  {}\n", name, width, text);
}

void print(const std::vector<Property>& properties, const Advice& advice,
           const std::string& profile) {
  for (const Property& property : properties) {
    fmt::print("{:<17} {:<8} {}\n", property.name, property.value, property.reason);
  }
  const Choice& best = advice.choices.front();
  fmt::print("\n{}", best.method.name);
  fmt::print(", {:.2f} us on the model {}\n", to_microseconds(*best.expected), profile);
  if (best.wasteful) {
    fmt::print("  Some of its steps are not needed here; no method does without such steps.\n");
  }
  const bool publishes = best.method.update == methods::Update::publish;
  const int width = publishes ? 12 : 10;
  std::size_t i = 0;
  for (const pmem::Agent& agent : best.method.program.agents) {
    for (const pmem::Step& step : agent.steps) {
      fmt::print("  {:<{}} {:<20} {}\n", to_string(best.method.program, agent), width,
                 to_text(best.method.program, agent, step), best.reasons[i++]);
    }
  }
  if (publishes) {
    fmt::print("  requester 2 is a reader: {}\n", to_string(best.method.readers_duty()));
  }
  if (best.method.marks()) {
    fmt::print(
        "  b=1 is the link with the mark \"not yet durable\", b=2 and b=3 without; recovery "
        "ignores the mark\n");
  }
  if (const std::string needs = needs_of(best.method); !needs.empty()) {
    fmt::print("  needs {} of the devices\n", needs);
  }
  fmt::print("  perdura list methods {} prints it as a file for perdura crash\n", best.method.name);
  if (advice.choices.size() > 1) fmt::print("\nalso right\n");
  std::vector<std::pair<std::string, std::string>> lines;
  for (std::size_t other = 1; other < advice.choices.size(); ++other) {
    const Choice& choice = advice.choices[other];
    lines.emplace_back(choice.method.name,
                       fmt::format("{:.2f} us{}", to_microseconds(*choice.expected),
                                   choice.wasteful ? ", with steps that are not needed here" : ""));
  }
  print_columns(lines);
  if (!advice.refusals.empty()) fmt::print("\nnot suitable here\n");
  lines.clear();
  for (const methods::Refusal& refusal : advice.refusals) {
    lines.emplace_back(refusal.method, refusal.reason);
  }
  print_columns(lines);
  fmt::print(
      "\nThe model's times may be {} % off. Of methods within that of the fastest, the first is "
      "the "
      "one that needs the least of the responder's CPU and of the devices.\n",
      methods::kModelErrorPercent);
}

harness::ExitCode advise(AdviseArguments arguments, const CommandContext& context) {
  if (!context.ranks.is_root()) return harness::ExitCode::done;
  methods::UpdateNeeds& needs = arguments.needs;
  for (const auto update : methods::kUpdates) {
    if (arguments.update == to_string(update)) needs.update = update;
  }
  for (const auto carrier : methods::kCarriers) {
    if (arguments.operation && *arguments.operation == to_string(carrier)) needs.carrier = carrier;
  }
  if (arguments.second_size && needs.update != methods::Update::ordered) {
    throw UsageError(
        "advise: --second-size is for --update ordered; a single update has one size, and a link "
        "has 8 bytes");
  }
  if (arguments.link && needs.update != methods::Update::publish) {
    throw UsageError("advise: --link is for --update publish");
  }
  for (const auto link : methods::kLinks) {
    if (arguments.link && *arguments.link == to_string(link)) needs.link = link;
  }
  needs.second_size = arguments.second_size.value_or(needs.second_size);
  needs.responder_cpu = !arguments.one_sided;
  needs.replay = !arguments.no_replay;
  const Known known = known_of_responder(arguments.responder);
  std::vector<Property> properties = complete(arguments.configuration, known.responder);
  const methods::DeviceFeatures features = settle_features(arguments, known, properties);
  if (known.found) add_dax(*known.found, properties);
  const auto configurations = arguments.configuration.matching();
  const sim::Profile profile = sim::load_profile(
      context.locations.find(harness::FileKind::profile, {arguments.profile, "--profile"})
          .string());
  // Unknown properties of the responder do not change a method's steps, and hardly change its time,
  // so one configuration suffices for the estimate.
  harness::LongWork work(methods::methods().size(), context.ranks);
  const auto cost = [&](const methods::Method& method) -> std::optional<Picoseconds> {
    work.within(method.name, 0);
    work.skip();
    return systems::remote_log::expected_latency(method, profile, configurations.front(), needs,
                                                 features);
  };
  const Advice advice = methods::advise(configurations, needs, features, cost);
  work.close();
  if (advice.choices.empty()) {
    throw UsageError(
        fmt::format("advise: {}", methods::why_nothing(configurations, needs, advice)));
  }
  if (!arguments.as_json) {
    print(properties, advice, profile.name);
    return harness::ExitCode::done;
  }
  Json result{{"configuration", Json::array()},
              {"model_error_percent", methods::kModelErrorPercent},
              {"choices", Json::array()},
              {"refused", Json::array()}};
  for (const Property& property : properties) {
    result["configuration"].push_back(
        {{"name", property.name}, {"value", property.value}, {"reason", property.reason}});
  }
  for (const Choice& choice : advice.choices) result["choices"].push_back(as_json(choice));
  for (const methods::Refusal& refusal : advice.refusals) {
    result["refused"].push_back({{"method", refusal.method}, {"reason", refusal.reason}});
  }
  fmt::print("{}\n", result.dump(2));
  return harness::ExitCode::done;
}

}  // namespace

void add_advise(harness::Command& program, CommandContext& context) {
  const auto arguments = std::make_shared<AdviseArguments>();
  harness::Command& command = program.subcommand(
      "advise",
      "Chooses the method of remote persistence for a responder; what is not given is "
      "detected, as if this machine were it");
  command.option("--responder", arguments->responder,
                 "A file that 'perdura doctor --json' wrote on the responder; used instead of "
                 "what is detected here");
  arguments->configuration.add_to(command);
  command
      .option("--update", arguments->update,
              "One update, two in order, or a block and then a link that others read")
      .one_of({"single", "ordered", "publish"});
  command
      .option("--link", arguments->link,
              "What sets the link to a published block: a CAS, or a WRITE of 8 bytes if "
              "there is one writer at a time")
      .one_of({"cas", "write"});
  command.option("--operation", arguments->operation, "What carries the update")
      .one_of({"write", "write-imm", "send"});
  command.option("--size", arguments->needs.size, "Bytes of the update")
      .whole_number(1, kLargestUpdate);
  command.option("--second-size", arguments->second_size, "Bytes of the second update of two")
      .whole_number(1, kLargestUpdate);
  command.flag("--one-sided", arguments->one_sided,
               "The responder's CPU must not take part before the acknowledgment");
  command.flag("--no-replay", arguments->no_replay,
               "Recovery cannot replay messages that it finds in receive buffers");
  command.flag("--flush,!--no-flush", arguments->flush,
               "Whether both devices have FLUSH; without it, READ emulates it");
  command.flag("--flush-persistence,!--no-flush-persistence", arguments->flush_persistence,
               "Whether both devices have FLUSH for persistence");
  command.flag("--atomic-write,!--no-atomic-write", arguments->atomic_write,
               "Whether both devices have ATOMIC WRITE");
  command.flag("--atomics,!--no-atomics", arguments->atomics,
               "Whether both devices have CAS; on iWARP none has");
  command.option("--profile", arguments->profile,
                 "Testbed on whose model the methods are timed (default: remote-log-connectx4)");
  command.flag("--json", arguments->as_json, "Writes JSON");
  command.does([arguments, &context] { return advise(*arguments, context); });
}

}  // namespace perdura::program
