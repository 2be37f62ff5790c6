#include "explore/soak.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "explore/crash.h"
#include "explore/explanation/explanation.h"
#include "explore/shrink.h"

namespace perdura::explore {

namespace {

using services::GuaranteeLevel;

// Some seconds' worth.
constexpr std::uint64_t kMostRunsOfShrinking = 2500;

// Keys of SoakRun::happened.
constexpr std::string_view kImageNotRepeated = "losses in images that no run repeats";

bool keeps(GuaranteeLevel kept, GuaranteeLevel expected) { return kept >= expected; }

// A run cannot keep less than `none`, and finding out that no level is kept takes longest, so
// nothing is judged if nothing is expected.
services::ToJudge judged_for(GuaranteeLevel expected) {
  return expected > GuaranteeLevel::none ? services::ToJudge::all() : services::ToJudge::none();
}

// Calls `with` for each system, setting and kind of server, and why it is refused, if it is.
template <class Function>
void for_each_cell(const std::vector<services::ServedSystem>& systems, const sim::Profile& profile,
                   const Function& with) {
  for (const services::ServedSystem& system : systems) {
    for (const ExploredSetting& setting : explored_settings(system.info)) {
      for (const pmem::PersistenceModel& model : explored_models()) {
        SoakCase one{system, setting, model,
                     setting.correct ? GuaranteeLevel::durable : system.info.level};
        std::string refused = refusal(system.info, one.setup(), profile.nic);
        const auto cell = explored_cell(system.info, setting.parameters, setting.correct, model);
        if (cell && cell->level) {
          one.expected = *cell->level;
        } else if (cell) {
          refused = cell->refused;
        }
        with(std::move(one), refused);
      }
    }
  }
}

// Leaves out lines in the middle of a text that is too long: how a run begins and what was wrong at
// its end matter most.
std::string shortened(const std::string& text) {
  constexpr std::size_t kFirstLines = SoakFinding::kMostLines / 2;
  constexpr std::size_t kLastLines = SoakFinding::kMostLines - kFirstLines - 1;
  std::vector<std::size_t> begins{0};
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos;) begins.push_back(++at);
  if (begins.back() == text.size()) begins.pop_back();
  if (begins.size() <= SoakFinding::kMostLines) return text;
  const std::size_t resumes = begins.size() - kLastLines;
  return fmt::format("{}  ... {} lines left out\n{}", text.substr(0, begins[kFirstLines]),
                     resumes - kFirstLines, text.substr(begins[resumes]));
}

}  // namespace

std::string SoakCase::name() const {
  return fmt::format("{} on {}", explored_name(system.info, setting), explored_name(model));
}

std::vector<SoakCase> soak_cases(const std::vector<services::ServedSystem>& systems,
                                 const sim::Profile& profile) {
  std::vector<SoakCase> cases;
  for_each_cell(systems, profile, [&](SoakCase one, const std::string& refused) {
    if (refused.empty()) cases.push_back(std::move(one));
  });
  return cases;
}

std::vector<std::string> refused_cases(const std::vector<services::ServedSystem>& systems,
                                       const sim::Profile& profile) {
  // The servers of each setting and reason, in the order of the table.
  std::vector<std::pair<std::pair<std::string, std::string>, std::vector<std::string>>> servers;
  for_each_cell(systems, profile, [&](const SoakCase& one, const std::string& refused) {
    if (refused.empty()) return;
    const std::pair key{explored_name(one.system.info, one.setting), refused};
    if (servers.empty() || servers.back().first != key) servers.push_back({key, {}});
    servers.back().second.push_back(explored_name(one.model));
  });
  std::vector<std::string> lines;
  for (const auto& [key, names] : servers) {
    lines.push_back(
        fmt::format("{} on {}: {}{}", key.first, fmt::join(names, ", "), kRefused, key.second));
  }
  return lines;
}

Diagram explain(const SoakCase& one, const sim::Profile& profile, pmem::Tape& tape) {
  Recording recording;
  GeneratedRun generated(one.system, profile, one.setup(), tape);
  generated.run().observe(recording);
  const services::Verdict verdict = generated.run().run();
  ExplainedRun run = generated.run().story();
  run.title = fmt::format("{}: kept {} instead of {}", one.name(), to_string(verdict.strongest()),
                          to_string(one.expected));
  const services::Loss loss = verdict.loss_of(one.expected);
  run.conclusion = conclusion_of(loss.why);
  run.object = loss.object;
  return explain(recording, run);
}

SoakRun run_once(const SoakCase& one, const sim::Profile& profile, pmem::Tape& tape,
                 std::uint64_t images) {
  GeneratedRun generated(one.system, profile, one.setup(), tape);
  ScenarioRun& made = generated.run();
  if (images > 0) made.keep_images();
  const services::ToJudge judged = judged_for(one.expected);
  const services::Verdict verdict = made.run(judged);
  SoakRun run;
  run.failures = made.failures();
  run.events = made.events();
  run.happened = made.happened();
  run.kept = verdict.strongest();
  const services::Loss loss = verdict.loss_of(one.expected);
  if (loss.undecided) {
    run.kept = one.expected;
    run.undecided = true;
    ++run.happened[std::string(kUndecided)];
  } else if (!loss.why.empty()) {
    run.loss = loss.why;
    if (!run.loss.ends_with('\n')) run.loss += '\n';  // a problem is no more than a message
  }
  run.states = made.states();
  if (images == 0 || !run.loss.empty() || !judged.any()) return run;
  const auto fails = [&](const services::Verdict& of_image) {
    const services::Loss of_level = of_image.loss_of(one.expected);
    if (of_level.undecided) ++run.happened[std::string(kUndecided)];
    return !of_level.why.empty() && !of_level.undecided;
  };
  const ScenarioRun::ImagesTried tried = made.try_images(images, fails);
  run.recoveries = tried.recoveries;
  if (tried.failure) run.failing_image = generated.with_image(tried);
  return run;
}

TriedRun try_once(const SoakCase& one, const sim::Profile& profile, pmem::Tape& tape,
                  std::uint64_t images) {
  TriedRun tried{run_once(one, profile, tape, images)};
  if (!keeps(tried.run.kept, one.expected)) {
    tried.failing = tape.drawn();
  } else if (tried.run.failing_image) {
    pmem::Tape of_image(*tried.run.failing_image);
    const SoakRun again = run_once(one, profile, of_image);
    if (keeps(again.kept, one.expected)) {
      ++tried.run.happened[std::string(kImageNotRepeated)];
    } else {
      tried.run.kept = again.kept;
      tried.failing = of_image.drawn();
    }
  }
  return tried;
}

CaseSoak::CaseSoak(SoakCase one, const sim::Profile& profile, std::uint64_t seed, bool varies,
                   std::uint64_t images)
    : case_(std::move(one)),
      profile_(profile),
      seed_(seed),
      images_(images),
      search_(seed, varies) {}

std::optional<SoakFinding> CaseSoak::next(const std::function<bool()>& stop) {
  pmem::Tape tape = search_.next();
  const TriedRun tried = try_once(case_, profile_, tape, images_);
  search_.learn(tape.drawn(), tried.run.states);
  ++counts_.schedules;
  counts_.fresh = search_.fresh();
  counts_.failures += tried.run.failures;
  const auto failed = tried.run.happened.find(std::string(kPowerFailures));
  const std::uint64_t failures = failed == tried.run.happened.end() ? 0 : failed->second;
  counts_.crash_states += failures + tried.run.recoveries;
  counts_.states = search_.states();
  for (const auto& [name, count] : tried.run.happened) counts_.happened[name] += count;
  if (!tried.failing) return std::nullopt;
  SoakFinding finding = simplest_finding(case_, profile_, *tried.failing, tried.run.kept, stop);
  finding.seed = seed_;
  finding.schedule = counts_.schedules;
  return finding;
}

SoakFinding simplest_finding(const SoakCase& one, const sim::Profile& profile,
                             const pmem::Tape::Streams& tape, services::GuaranteeLevel kept,
                             const std::function<bool()>& stop) {
  // One that keeps still less has another cause.
  const auto fails = [&](const pmem::Tape::Streams& streams) {
    pmem::Tape again{streams};
    return run_once(one, profile, again).kept == kept;
  };
  pmem::Tape first(tape);
  GeneratedRun generated(one.system, profile, one.setup(), first);
  generated.run().run();
  const pmem::Tape::Streams anchored = generated.anchored();
  const ShrinkLimits limits{kMostRunsOfShrinking, stop};
  Shrunk shrunk = shrink(fails(anchored) ? anchored : tape, fails, limits);
  pmem::Tape simplest(std::move(shrunk.tape));
  SoakFinding finding;
  finding.where = one;
  finding.run = run_once(one, profile, simplest);
  finding.tape = simplest.text();
  finding.stopped = shrunk.stopped;
  return finding;
}

void SoakCounts::add(const SoakCounts& other) {
  schedules += other.schedules;
  fresh += other.fresh;
  failures += other.failures;
  crash_states += other.crash_states;
  states += other.states;
  for (const auto& [name, count] : other.happened) happened[name] += count;
}

std::string SoakFinding::text() const {
  return shortened(fmt::format(
      "{}: kept {} instead of {} (seed {}, schedule {}{})\n{}{}", where.name(), to_string(run.kept),
      to_string(where.expected), seed, schedule,
      stopped ? "; stopped before it was as simple as possible" : "", run.events, run.loss));
}

}  // namespace perdura::explore
