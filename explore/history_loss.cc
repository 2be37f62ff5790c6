#include "explore/history_loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "explore/explanation/explanation.h"
#include "explore/scenario_run.h"
#include "platform/base/error.h"

namespace perdura::explore {

namespace {

using services::Condition;
using services::GuaranteeLevel;

constexpr std::string_view kSequence = "sequence";
constexpr std::string_view kFails = "fails";
constexpr std::string_view kCrashPoint = "crash-point";
constexpr std::string_view kImage = "image";

std::vector<std::uint64_t> numbers_of(const WhatFails& failing) {
  std::vector<std::uint64_t> choices{static_cast<std::uint64_t>(failing.kind)};
  if (of_servers(failing.kind)) {
    choices.push_back(failing.servers.size());
    choices.insert(choices.end(), failing.servers.begin(), failing.servers.end());
  } else {
    choices.push_back(failing.client);
    if (failing.kind == FailureKind::connection) {
      choices.insert(choices.end(), {failing.link.first, failing.link.second});
    }
  }
  return choices;
}

// Takes the choices of a stream one after the other; 0 where they have ended.
class StreamReader {
 public:
  StreamReader(const pmem::Tape::Streams& streams, std::string_view name) : name_(name) {
    if (const auto found = streams.find(name); found != streams.end()) left_ = found->second;
  }
  std::uint64_t next(std::uint64_t most) {
    const std::uint64_t taken = left_.empty() ? 0 : left_.front();
    if (taken > most) {
      throw UsageError(
          fmt::format("stream '{}' of choices: {} is more than {}", name_, taken, most));
    }
    if (!left_.empty()) left_ = left_.subspan(1);
    return taken;
  }
  std::vector<std::uint64_t> rest() const { return {left_.begin(), left_.end()}; }

 private:
  std::string_view name_;
  std::span<const std::uint64_t> left_{};
};

WhatFails failing_in(StreamReader choices) {
  constexpr std::uint64_t kMostServers = 1024;
  constexpr std::uint64_t kMostNumber = std::numeric_limits<NodeId>::max();
  const auto node = [&] { return static_cast<NodeId>(choices.next(kMostNumber)); };
  WhatFails failing;
  failing.kind = static_cast<FailureKind>(choices.next(std::size(kFailureKinds) - 1));
  if (of_servers(failing.kind)) {
    failing.servers.resize(choices.next(kMostServers));
    for (NodeId& server : failing.servers) server = node();
    return failing;
  }
  failing.client = node();
  if (failing.kind == FailureKind::connection) {
    const NodeId first = node();
    failing.link = {first, node()};
  }
  return failing;
}

// The weakest level that is lost with this condition.
GuaranteeLevel level_with(Condition condition) {
  for (const GuaranteeLevel level :
       {GuaranteeLevel::atomic, GuaranteeLevel::ordered, GuaranteeLevel::durable_writes}) {
    if (services::conditions_of(level).front() == condition) return level;
  }
  return GuaranteeLevel::durable;
}

SoakCase case_of(const services::ServedSystem& system, const services::CrashSetup& setup,
                 GuaranteeLevel expected) {
  return {system, given_setting(system.info, setup.parameters, setup.correct), setup.model,
          expected};
}

std::string whole_lines(std::string text) {
  if (!text.ends_with('\n')) text += '\n';  // a problem is no more than a message
  return text;
}

std::string repeat(const HistoryLoss& loss, const sim::Profile& profile, GuaranteeLevel expected) {
  const services::CrashSetup setup = loss.setup();
  ExploreOptions options{.seed = setup.seed, .only = loss.run.image, .threads = 1};
  options.judged = services::PerCondition<bool>(false);
  for (const Condition condition : services::conditions_of(expected)) {
    options.judged[condition] = true;
  }
  const History history = history_of(loss.where.system, setup, loss.run);
  const Findings found = explore_history(
      history, with_commits_if_needed(profile, loss.where.system.info, setup.parameters),
      setup.model, options);
  const std::string why = found.losses.loss_of(expected).why;
  return why.empty() ? "" : whole_lines(why);
}

}  // namespace

services::CrashSetup HistoryLoss::setup() const {
  services::CrashSetup setup = where.setup();
  setup.seed = seed;
  return setup;
}

pmem::Tape::Streams streams_of(const LosingRun& run) {
  pmem::Tape::Streams streams;
  if (run.schedule.empty()) streams[std::string(kSequence)] = {run.sequence};
  streams[std::string(kFails)] = numbers_of(run.failing);
  streams[std::string(kCrashPoint)] = {static_cast<std::uint64_t>(run.image.after.count())};
  streams[std::string(kImage)] = run.image.image;
  return streams;
}

void take_streams(const pmem::Tape::Streams& streams, LosingRun& run) {
  constexpr std::uint64_t kAny = std::numeric_limits<std::int64_t>::max();
  for (const auto& [name, choices] : streams) {
    const auto known = {kSequence, kFails, kCrashPoint, kImage};
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw UsageError(fmt::format("a fixed history has no stream '{}' of choices", name));
  }
  run.sequence = StreamReader(streams, kSequence).next(kAny);
  run.failing = failing_in({streams, kFails});
  const std::uint64_t after = StreamReader(streams, kCrashPoint).next(kAny);
  run.image.after = Picoseconds(static_cast<std::int64_t>(after));
  run.image.image = StreamReader(streams, kImage).rest();
}

Condition worst_lost(const CrashResult& result) {
  for (const Condition condition :
       {Condition::atomic, Condition::ordered, Condition::acknowledged}) {
    if (!result.guarantees[condition].held) return condition;
  }
  return Condition::durable;
}

HistoryLoss loss_of(const services::ServedSystem& system, const CrashOptions& options,
                    const CrashResult& result, Condition lost) {
  const Guarantee& guarantee = result[lost];
  return {.where = case_of(system, options.setup, level_with(lost)),
          .seed = options.setup.seed,
          .run = guarantee.losing_run.value(),
          .kept = result.strongest(),
          .text = whole_lines(guarantee.first_loss)};
}

HistoryLoss loss_of(const services::ServedSystem& system, const SequenceOptions& options,
                    const SequenceResult& result) {
  const SequenceResult::Loss& loss = result.loss.value();
  return {.where = case_of(system, options.setup, options.expected),
          .seed = options.setup.seed,
          .run = loss.run,
          .kept = loss.kept,
          .text = whole_lines(loss.why)};
}

std::string repeat(const HistoryLoss& loss, const sim::Profile& profile) {
  const services::SystemInfo& system = loss.where.system.info;
  if (const std::string why = refusal(system, loss.setup(), profile.nic); !why.empty()) {
    throw UsageError(fmt::format("{} {}", system.name, why));
  }
  const std::string why = repeat(loss, profile, loss.where.expected);
  if (!why.empty() || loss.where.expected == GuaranteeLevel::durable) return why;
  return repeat(loss, profile, GuaranteeLevel::durable);
}

std::optional<Diagram> explain(const HistoryLoss& loss, const sim::Profile& profile) {
  const services::CrashSetup setup = loss.setup();
  const std::unique_ptr<services::CrashScenario> scenario =
      history_of(loss.where.system, setup, loss.run).make();
  pmem::Tape tape(streams_of(loss.run));
  const sim::Profile devices =
      with_commits_if_needed(profile, loss.where.system.info, setup.parameters);
  ScenarioRun run(*scenario, devices, setup.model, failing(loss.run.failing, loss.run.image.after),
                  [&](const PlannedFailure&) -> pmem::Choices& { return tape.stream(kImage); });
  Recording recording;
  run.observe(recording);
  const services::Verdict verdict = run.run();
  if (verdict.holds_all()) return std::nullopt;
  // Where the run goes on otherwise than a recovery alone, it may break another condition.
  services::Loss lost = verdict.loss_of(loss.where.expected);
  if (lost.why.empty()) lost = verdict.loss(Condition::durable);
  ExplainedRun story = run.story();
  story.title =
      fmt::format("{}: {}", loss.where.system.info.name, loss.text.substr(0, loss.text.find('\n')));
  story.conclusion = conclusion_of(lost.why);
  if (loss.run.failing.is_power_of_all()) {
    story.clock =
        "here recovery begins when the power is back; in the history of the loss, which was found "
        "by recovering alone, it begins after the time at which all clients would have ended, so "
        "all times after the failure are later there.";
  }
  story.object = lost.object;
  return explain(recording, story);
}

}  // namespace perdura::explore
