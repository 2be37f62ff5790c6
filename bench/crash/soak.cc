#include "bench/crash/soak.h"

#include <fmt/format.h>

#include "bench/crash/explanation/explanation.h"
#include "bench/crash/shrink.h"

namespace perdura::bench {

namespace {

using services::GuaranteeLevel;

// Some seconds' worth.
constexpr std::uint64_t kMostRunsOfShrinking = 5000;

GuaranteeLevel level_of(const services::CrashVerdict& verdict) {
  if (verdict.durable.empty()) return GuaranteeLevel::durable;
  if (verdict.ordered.empty()) {
    return verdict.acknowledged.empty() ? GuaranteeLevel::durable_writes : GuaranteeLevel::ordered;
  }
  return verdict.atomic.empty() ? GuaranteeLevel::atomic : GuaranteeLevel::none;
}

// Why the run does not keep the level.
std::string loss_of(const services::CrashVerdict& verdict, GuaranteeLevel level) {
  switch (level) {
    case GuaranteeLevel::durable:
      return verdict.durable;
    case GuaranteeLevel::durable_writes:
      return verdict.acknowledged.empty() ? verdict.ordered : verdict.acknowledged;
    case GuaranteeLevel::ordered:
      return verdict.ordered;
    default:
      return verdict.atomic;
  }
}

bool keeps(GuaranteeLevel kept, GuaranteeLevel expected) { return kept >= expected; }

}  // namespace

std::string SoakCase::name() const {
  return fmt::format("{} on {}", explored_name(system.info, setting), explored_name(model));
}

std::vector<SoakCase> soak_cases(const std::vector<services::ServedSystem>& systems) {
  std::vector<SoakCase> cases;
  for (const services::ServedSystem& system : systems) {
    for (const ExploredSetting& setting : explored_settings(system.info)) {
      for (const pmem::PersistenceModel& model : explored_models()) {
        const auto cell = explored_cell(system.info, setting.parameters, setting.correct, model);
        if (cell && cell->level) cases.push_back({system, setting, model, *cell->level});
      }
    }
  }
  return cases;
}

Diagram explain(const SoakCase& one, const sim::Profile& profile, pmem::Tape& tape) {
  Recording recording;
  GeneratedRun generated(one.system, profile, one.setup(), tape);
  generated.observe(recording);
  const services::CrashVerdict verdict = generated.run();
  ExplainedRun run = generated.story();
  run.title = fmt::format("{}: kept {} instead of {}", one.name(), to_string(level_of(verdict)),
                          to_string(one.expected));
  const std::string loss = loss_of(verdict, one.expected);
  run.conclusion = conclusion_of(loss);
  run.object = object_of(verdict, loss);
  return explain(recording, run);
}

SoakRun run_once(const SoakCase& one, const sim::Profile& profile, pmem::Tape& tape) {
  GeneratedRun generated(one.system, profile, one.setup(), tape);
  const services::CrashVerdict verdict = generated.run();
  SoakRun run;
  run.failures = generated.failures();
  run.kept = level_of(verdict);
  if (!keeps(run.kept, one.expected)) run.loss = loss_of(verdict, one.expected);
  run.events = generated.events();
  return run;
}

std::optional<SoakFinding> soak(const SoakCase& one, const sim::Profile& profile,
                                std::uint64_t seed, std::uint32_t& failures) {
  pmem::Tape tape(seed);
  SoakRun run = run_once(one, profile, tape);
  failures = run.failures;
  if (keeps(run.kept, one.expected)) return std::nullopt;
  const auto fails = [&](const pmem::Tape::Streams& streams) {
    pmem::Tape again{streams};
    return !keeps(run_once(one, profile, again).kept, one.expected);
  };
  pmem::Tape simplest(shrink(tape.drawn(), fails, kMostRunsOfShrinking).tape);
  run = run_once(one, profile, simplest);
  return SoakFinding{one, seed, simplest.text(), std::move(run)};
}

std::string SoakFinding::text() const {
  return fmt::format("{}: kept {} instead of {} (seed {})\n{}{}", where.name(), to_string(run.kept),
                     to_string(where.expected), seed, run.events, run.loss);
}

}  // namespace perdura::bench
