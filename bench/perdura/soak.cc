// perdura soak: random clusters, clients, schedules and failures of all systems, until told to
// stop; and perdura crash --replay, which repeats what it found.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "bench/crash/soak.h"
#include "bench/perdura/commands.h"
#include "bench/perdura/crash_arguments.h"
#include "bench/perdura/whole_number.h"
#include "harness/run/long_work.h"
#include "harness/text/atomic_file.h"
#include "harness/text/path_kind.h"
#include "harness/text/whole_file.h"
#include "platform/base/error.h"
#include "systems/registry/registry.h"

namespace perdura::harness {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::string_view kProfile = "erda-connectx3";

struct SoakArguments {
  std::vector<std::string> systems;  // empty: all
  std::uint64_t minutes = 1;
  std::uint64_t runs = 0;  // of each case; 0: no limit
  std::uint64_t seed = 1;
  std::string folder = "out/soak";
};

std::string file_name(const bench::SoakFinding& finding) {
  std::string name = fmt::format("{}-seed-{}", finding.where.name(), finding.seed);
  for (char& letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '-';
  }
  return name + ".json";
}

ordered_json as_json(const bench::SoakFinding& finding, std::string_view profile) {
  const bench::SoakCase& where = finding.where;
  return {{"system", where.system.info.name},
          {"setting", where.setting.name},
          {"server", bench::explored_name(where.model)},
          {"profile", profile},
          {"expected", to_string(where.expected)},
          {"kept", to_string(finding.run.kept)},
          {"seed", finding.seed},
          {"choices", finding.tape}};
}

// The runs of this process: threads take (case, seed) pairs in turn. Only the first finding of a
// system's setting is kept, since the others are likely to have the same cause.
class Soak {
 public:
  Soak(const SoakArguments& arguments, std::vector<bench::SoakCase> cases,
       const CommandContext& context)
      : arguments_(arguments),
        cases_(std::move(cases)),
        context_(context),
        profile_(sim::load_profile(
            context.locations.find(FileKind::profile, {std::string(kProfile), ""}).string())),
        rank_(static_cast<std::uint64_t>(context.ranks.rank())),
        ranks_(static_cast<std::uint64_t>(context.ranks.size())),
        end_(Clock::now() + std::chrono::minutes(arguments.minutes)),
        work_(1, context.ranks) {
    work_.begin("soak");
  }

  // Returns when the time is over, or all runs are done. A signal ends it early, with what it has
  // found so far.
  void run() {
    // The ranks of a job share the work, so a process of it needs one thread.
    const unsigned threads = ranks_ > 1 ? 1 : std::max(1U, std::thread::hardware_concurrency());
    {
      std::vector<std::jthread> workers;
      for (unsigned i = 0; i < threads; ++i) workers.emplace_back([this] { take_turns(); });
    }
    work_.close();
    if (problem_) std::rethrow_exception(problem_);
  }

  std::uint64_t runs() const { return runs_; }
  std::uint64_t failures() const { return failures_; }
  std::uint64_t findings() const { return findings_; }

 private:
  using Clock = std::chrono::steady_clock;

  void take_turns() {
    try {
      for (std::uint64_t turn; (turn = next_++), !over(turn);) try_case(turn);
    } catch (const Interrupted&) {
      stop_ = true;
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!problem_) problem_ = std::current_exception();
      stop_ = true;
    }
  }

  bool over(std::uint64_t turn) const {
    return stop_ || Clock::now() >= end_ ||
           (arguments_.runs > 0 && turn / cases_.size() >= arguments_.runs);
  }

  void try_case(std::uint64_t turn) {
    const bench::SoakCase& one = cases_[turn % cases_.size()];
    const std::uint64_t seed = arguments_.seed + turn / cases_.size() * ranks_ + rank_;
    const std::string setting = bench::explored_name(one.system.info, one.setting);
    {
      const std::lock_guard lock(mutex_);
      if (found_.contains(setting)) return;
    }
    std::uint32_t failures = 0;
    const auto finding = bench::soak(one, profile_, seed, failures);
    ++runs_;
    failures_ += failures;
    show_progress(seed);
    if (!finding) return;
    const std::lock_guard lock(mutex_);
    if (!found_.insert(setting).second) return;
    ++findings_;
    const std::string file = write_finding(*finding, kProfile, arguments_.folder);
    work_.close();
    fmt::print("{}\nperdura crash --replay {} repeats it\n\n", finding->text(), file);
    std::fflush(stdout);
  }

  void show_progress(std::uint64_t seed) {
    const std::chrono::duration<double> all = std::chrono::minutes(arguments_.minutes);
    const std::chrono::duration<double> left = end_ - Clock::now();
    work_.within(fmt::format("seed {}, {} runs", seed, runs_.load()),
                 std::clamp(1 - left / all, 0.0, 1.0));
  }

  const SoakArguments& arguments_;
  const std::vector<bench::SoakCase> cases_;
  const CommandContext& context_;
  const sim::Profile profile_;
  const std::uint64_t rank_;
  const std::uint64_t ranks_;
  const Clock::time_point end_;
  LongWork work_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> runs_{0};
  std::atomic<std::uint64_t> failures_{0};
  std::atomic<std::uint64_t> findings_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::set<std::string> found_;
  std::exception_ptr problem_;
};

ExitCode soak(const SoakArguments& arguments, CommandContext& context) {
  std::vector<services::ServedSystem> systems;
  for (const services::ServedSystem& system : systems::all_systems()) {
    const bool wanted =
        arguments.systems.empty() || std::find(arguments.systems.begin(), arguments.systems.end(),
                                               system.info.name) != arguments.systems.end();
    if (wanted) systems.push_back(system);
  }
  std::error_code problem;
  fs::create_directories(arguments.folder, problem);
  if (problem) {
    throw UsageError(fmt::format("soak: --out {}: {}", arguments.folder, problem.message()));
  }
  Soak soak(arguments, bench::soak_cases(systems), context);
  soak.run();
  std::uint64_t runs = 0;
  std::uint64_t failures = 0;
  std::uint64_t findings = 0;
  for (const auto& of_rank :
       context.ranks.gather({soak.runs(), soak.failures(), soak.findings()})) {
    runs += of_rank[0];
    failures += of_rank[1];
    findings += of_rank[2];
  }
  if (context.ranks.is_root()) {
    fmt::print("{} runs with {} failures; {} found less than the table of guarantees says\n", runs,
               failures, findings);
  }
  return context.ranks.broadcast(findings > 0 ? 1 : 0) != 0 ? ExitCode::failed : ExitCode::done;
}

// The case that a file of a finding names. Throws UsageError.
bench::SoakCase case_of(const ordered_json& found, const std::string& file) {
  const auto system = systems::find_system(found.at("system").get<std::string>());
  if (!system) {
    throw UsageError(fmt::format("crash: --replay {}: there is no system '{}'", file,
                                 found.at("system").get<std::string>()));
  }
  for (const bench::SoakCase& one : bench::soak_cases({*system})) {
    if (one.setting.name == found.at("setting").get<std::string>() &&
        bench::explored_name(one.model) == found.at("server").get<std::string>()) {
      bench::SoakCase expected = one;
      const auto level = services::guarantee_of_word(found.at("expected").get<std::string>());
      expected.expected = level.value_or(one.expected);
      return expected;
    }
  }
  throw UsageError(fmt::format("crash: --replay {}: {} has no setting '{}' on server '{}'", file,
                               system->info.name, found.at("setting").get<std::string>(),
                               found.at("server").get<std::string>()));
}

}  // namespace

std::string write_finding(const bench::SoakFinding& finding, std::string_view profile,
                          const std::string& folder) {
  const fs::path file = fs::path(folder) / file_name(finding);
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem) throw UsageError(fmt::format("--out {}: {}", folder, problem.message()));
  write_atomically(file, as_json(finding, profile).dump(2) + "\n");
  return file.string();
}

ExitCode replay_finding(const std::string& file, const CommandContext& context) {
  if (!context.ranks.is_root()) return ExitCode::done;
  const auto text = read_whole(file);
  if (!text) throw UsageError(fmt::format("crash: --replay {}: {}", file, not_a_file(file)));
  try {
    const ordered_json found = ordered_json::parse(*text);
    bench::SoakFinding finding;
    finding.where = case_of(found, file);
    finding.seed = found.at("seed").get<std::uint64_t>();
    finding.tape = found.at("choices").get<std::string>();
    const sim::Profile profile = sim::load_profile(
        context.locations
            .find(FileKind::profile, {found.at("profile").get<std::string>(), "--replay"})
            .string());
    pmem::Tape tape = pmem::Tape::parse(finding.tape);
    finding.run = run_once(finding.where, profile, tape);
    fmt::print("{}", finding.text());
    return finding.run.loss.empty() ? ExitCode::done : ExitCode::failed;
  } catch (const nlohmann::json::exception& error) {
    throw UsageError(
        fmt::format("crash: --replay {}: not a finding of perdura soak: {}", file, error.what()));
  }
}

void add_soak(CLI::App& app, CommandContext& context, Action& action) {
  const auto arguments = std::make_shared<SoakArguments>();
  CLI::App* command = app.add_subcommand(
      "soak",
      "Tries random schedules and failures of systems; ends with 1 if one keeps less than "
      "the table of guarantees says");
  std::vector<std::string> known;
  for (const auto& system : systems::all_systems()) known.emplace_back(system.info.name);
  command->add_option("systems", arguments->systems, "Only these systems (default: all)")
      ->check(CLI::IsMember(known));
  command->add_option("--minutes", arguments->minutes, "How long (default: 1)")
      ->check(whole_number(1, 1'000'000));
  command
      ->add_option("--runs", arguments->runs,
                   "At most so many runs of each system, setting and kind of server")
      ->check(whole_number(1, 1'000'000'000));
  command->add_option("--seed", arguments->seed, "Seed of the first run (default: 1)")
      ->check(whole_number(0, ~std::uint64_t{0}));
  command->add_option("-o,--out", arguments->folder,
                      "Folder for what is found (default: out/soak)");
  command->callback([arguments, &context, &action] {
    action = [arguments, &context] { return soak(*arguments, context); };
  });
}

}  // namespace perdura::harness
