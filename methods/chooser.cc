#include "methods/chooser.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "platform/base/error.h"

namespace perdura::methods {

namespace {

using pmem::StepKind;

constexpr std::string_view kNoFlushPersistence = "a device lacks FLUSH for persistence";
constexpr std::string_view kNoAtomics = "iWARP has no atomics";

// The reason why the user's needs or the devices rule a method out, if there is one.
std::optional<std::string> unfit(const Method& method, const UpdateNeeds& needs,
                                 const DeviceFeatures& features,
                                 const std::vector<Configuration>& configurations) {
  const fabric::DeviceNeeds of_devices = method.needs();
  if (of_devices.atomics) {
    const bool iwarp = std::any_of(configurations.begin(), configurations.end(),
                                   [](const Configuration& configuration) {
                                     return configuration.model.transport == pmem::Transport::iwarp;
                                   });
    if (iwarp) return std::string(kNoAtomics);
    if (!features.atomics) return "a device lacks atomics";
  }
  if (!needs.responder_cpu && !method.responder().empty()) {
    return "the responder's CPU takes part";
  }
  if (of_devices.flush_persistence && !features.flush_persistence) {
    return std::string(kNoFlushPersistence);
  }
  if (method.update == Update::publish && needs.second_size != kWord) return "a link has 8 bytes";
  if (of_devices.atomic_write) {
    if (!features.atomic_write) return "a device lacks ATOMIC WRITE";
    if (needs.second_size > kWord) return "ATOMIC WRITE writes 8 bytes at most";
  }
  return std::nullopt;
}

// Without replay after a failure, receive buffers in persistent memory are worth no more than
// buffers in DRAM.
Configuration as_used(Configuration configuration, const UpdateNeeds& needs) {
  if (!needs.replay) configuration.receive_buffers = pmem::Medium::dram;
  return configuration;
}

std::string_view purpose_of(const pmem::Step& step, const pmem::Agent& agent) {
  const bool sets = step.kind != StepKind::await && !step.changes.empty();
  if (sets && is_unmarked(step.changes[0])) return "removes the mark, since the link is durable";
  if (step.kind == StepKind::compare_and_swap && role_of(agent) == Role::reader) {
    return "changes the link to what it is, for the next step to push";
  }
  return purpose(step.kind);
}

std::string reason_of(const pmem::Step& step, const pmem::Agent& agent, const Proof& without) {
  const std::string_view what = purpose_of(step, agent);
  switch (without.correctness) {
    case Correctness::right:
      return fmt::format("{}; not needed here", what);
    case Correctness::deadlock:
      return fmt::format("{}; without it, the update would never finish", what);
    case Correctness::wrong:
      break;
  }
  std::vector<std::string_view> breaches;
  for (const Breach breach : without.breaches) breaches.push_back(to_string(breach));
  return fmt::format("{}; without it, updates may be {}", what, fmt::join(breaches, " or "));
}

// The cost of a method if it cannot be measured: round trips, then the responder's CPU, then steps.
auto rough_cost(const Method& method) {
  std::size_t round_trips = 0;
  std::size_t steps = method.responder().size() + method.requester().size();
  for (const pmem::Step& step : method.requester()) {
    if (step.kind == StepKind::completion || step.kind == StepKind::receive_ack || step.fenced) {
      ++round_trips;
    }
  }
  return std::tuple(round_trips, method.responder().empty() ? 0 : 1, steps);
}

// The number of operations of a method that not every device has.
int special_operations(const Method& method) {
  int count = 0;
  for (const StepKind kind :
       {StepKind::flush_persistence, StepKind::atomic_write, StepKind::flush_visibility}) {
    if (method.uses(kind)) ++count;
  }
  return count;
}

std::size_t steps_of(const Method& method) {
  std::size_t steps = 0;
  for (const pmem::Agent& agent : method.program.agents) steps += agent.steps.size();
  return steps;
}

// A user should not be told to do more in more time: a method with fewer steps and less time than
// the first takes its place. Both are right, so the other advantages of the first (the responder's
// CPU, the devices) would have to outweigh both.
void put_undominated_first(std::vector<Choice>& choices) {
  const auto better = [](const Choice& a, const Choice& b) {
    return a.expected && b.expected && *a.expected < *b.expected &&
           steps_of(a.method) < steps_of(b.method);
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (auto other = choices.begin(); other != choices.end(); ++other) {
      if (!better(*other, choices.front())) continue;
      std::rotate(choices.begin(), other, other + 1);
      changed = true;
      break;
    }
  }
}

// Methods with unnecessary steps come last, however fast they are, and before them those that make
// each read of a link an update. The others are sorted by time, except for those that are as fast
// as the fastest within the error of the model: they are sorted by what they need.
void sort(std::vector<Choice>& choices) {
  Picoseconds fastest = Picoseconds::max();
  for (const Choice& choice : choices) {
    if (!choice.wasteful) fastest = std::min(fastest, choice.expected.value_or(fastest));
  }
  const auto rank = [&](const Choice& choice) {
    const Picoseconds time = choice.expected.value_or(Picoseconds::max());
    const bool among_fastest =
        !choice.wasteful && (time - fastest) <= fastest / 100 * kModelErrorPercent;
    const Picoseconds slower = among_fastest ? Picoseconds{} : time;
    const auto [round_trips, responder, steps] = rough_cost(choice.method);
    // Without measured times, round trips stand for the time.
    const auto in_place_of_time = choice.expected ? 0 : round_trips;
    const bool always_persist = choice.method.update == Update::publish &&
                                choice.method.readers_duty() == ReadersDuty::persist;
    return std::tuple(choice.wasteful, always_persist, slower, in_place_of_time, responder,
                      special_operations(choice.method), round_trips, steps, time);
  };
  std::stable_sort(choices.begin(), choices.end(),
                   [&](const Choice& a, const Choice& b) { return rank(a) < rank(b); });
  put_undominated_first(choices);
}

}  // namespace

Advice advise(const std::vector<Configuration>& configurations, const UpdateNeeds& needs,
              const DeviceFeatures& features, const CostOf& cost) {
  Advice advice;
  for (const Method& known : methods()) {
    if (known.update != needs.update || (needs.carrier && known.carrier != *needs.carrier) ||
        (needs.update == Update::publish && known.link() != needs.link)) {
      continue;
    }
    if (const auto reason = unfit(known, needs, features, configurations)) {
      advice.refusals.push_back({known.name, *reason});
      continue;
    }
    Choice choice{features.flush ? known : with_read_for_flush(known), {}, false};
    ProofOptions options;
    options.to_the_end = false;
    options.words_of_b = static_cast<std::uint32_t>(
        std::clamp<Bytes>((needs.second_size + kWord - 1) / kWord, 1, kCacheLine / kWord));
    std::string wrong;
    for (const Configuration& configuration : configurations) {
      const Proof proof = prove(choice.method, as_used(configuration, needs), options);
      if (proof.correctness == Correctness::right) continue;
      wrong = fmt::format("{}: {}", to_string(configuration), proof.broken);
      break;
    }
    if (!wrong.empty()) {
      advice.refusals.push_back({known.name, wrong});
      continue;
    }
    // A step is necessary if it is so on any of the configurations.
    std::vector<StepProof> steps;
    for (const Configuration& configuration : configurations) {
      auto proofs = prove_steps(choice.method, as_used(configuration, needs));
      if (steps.empty()) steps = proofs;
      for (std::size_t i = 0; i < proofs.size(); ++i) {
        if (steps[i].without.correctness == Correctness::right) steps[i] = std::move(proofs[i]);
      }
    }
    for (const StepProof& step : steps) {
      const pmem::Agent& agent = choice.method.program.agents[step.agent];
      choice.reasons.push_back(reason_of(agent.steps[step.step], agent, step.without));
      if (step.without.correctness == Correctness::right) choice.wasteful = true;
    }
    if (cost) choice.expected = cost(choice.method);
    advice.choices.push_back(std::move(choice));
  }
  sort(advice.choices);
  return advice;
}

Method choose(const std::vector<Configuration>& configurations, const UpdateNeeds& needs,
              const DeviceFeatures& features) {
  const Advice advice = advise(configurations, needs, features);
  if (advice.choices.empty()) throw UsageError(why_nothing(configurations, needs, advice));
  return advice.choices.front().method;
}

std::string why_nothing(const std::vector<Configuration>& configurations, const UpdateNeeds& needs,
                        const Advice& advice) {
  const bool some_dram = std::any_of(
      configurations.begin(), configurations.end(), [&](const Configuration& configuration) {
        return as_used(configuration, needs).receive_buffers == pmem::Medium::dram;
      });
  const bool some_cached = std::any_of(
      configurations.begin(), configurations.end(), [](const Configuration& configuration) {
        return configuration.model.domain == pmem::PersistenceDomain::dmp &&
               configuration.model.ddio;
      });
  const bool lacks_flush_persistence =
      std::any_of(advice.refusals.begin(), advice.refusals.end(),
                  [](const Refusal& refusal) { return refusal.reason == kNoFlushPersistence; });
  const bool all_lack_atomics =
      !advice.refusals.empty() &&
      std::all_of(advice.refusals.begin(), advice.refusals.end(),
                  [](const Refusal& refusal) { return refusal.reason == kNoAtomics; });
  std::string why = "no method is safe";
  if (all_lack_atomics) {
    why =
        "iWARP has no atomics, and so no CAS; publish by WRITE, which serves one writer at a time, "
        "or use InfiniBand or RoCE (state the transport if it is one of them)";
  } else if (needs.carrier == Carrier::send && !needs.responder_cpu && some_dram) {
    why =
        "a SEND ends in a receive buffer in DRAM, or in one that recovery cannot replay, and is "
        "lost unless the responder's CPU copies it before it acknowledges; allow that, or place "
        "the buffers in persistent memory";
  } else if (!needs.responder_cpu && some_cached && lacks_flush_persistence) {
    why =
        "under DMP with DDIO messages end in the cache, which loses its contents, and only the "
        "responder's CPU can flush them; allow that, turn DDIO off, or use devices with FLUSH for "
        "persistence";
  } else if (!advice.refusals.empty()) {
    std::vector<std::string> reasons;
    for (const Refusal& refusal : advice.refusals) {
      reasons.push_back(fmt::format("{} ({})", refusal.method, refusal.reason));
    }
    why += fmt::format(": {}", fmt::join(reasons, "; "));
  }
  return why;
}

}  // namespace perdura::methods
