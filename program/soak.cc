// perdura soak: random clusters, clients, schedules and failures of all systems, until told to
// stop.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "explore/soak.h"
#include "harness/run/crash_message.h"
#include "harness/run/long_work.h"
#include "harness/text/output_place.h"
#include "platform/base/error.h"
#include "platform/base/json.h"
#include "platform/host/os_thread.h"
#include "program/commands.h"
#include "program/finding_file.h"
#include "systems/registry/registry.h"

namespace perdura::program {
namespace {

namespace fs = std::filesystem;
using explore::SoakCounts;

struct SoakArguments {
  std::vector<std::string> systems;  // empty: all
  std::uint64_t minutes = 1;
  std::uint64_t runs = 0;  // per case and process; 0: no limit
  std::uint64_t seed = 1;
  std::uint64_t threads = 0;            // per process; 0: chosen by Soak
  std::optional<std::string> expected;  // a guarantee level for all cases; absent: the table's
  bool late_placements = false;
  std::string folder = "out/soak";
};

// The runs and findings of a process, per system.
struct SoakReport {
  struct OfSystem {
    SoakCounts counts;
    std::vector<std::string> files;  // files with findings
  };
  std::map<std::string, OfSystem> systems;
  bool interrupted = false;

  void add(const SoakReport& other) {
    for (const auto& [name, of_other] : other.systems) {
      OfSystem& system = systems[name];
      system.counts.add(of_other.counts);
      system.files.insert(system.files.end(), of_other.files.begin(), of_other.files.end());
    }
    interrupted = interrupted || other.interrupted;
  }
  std::size_t findings() const {
    std::size_t count = 0;
    for (const auto& [name, system] : systems) count += system.files.size();
    return count;
  }
  SoakCounts sum() const {
    SoakCounts all;
    for (const auto& [name, system] : systems) all.add(system.counts);
    return all;
  }
};

std::string to_text(const SoakReport& report) {
  Json systems = Json::object();
  for (const auto& [name, system] : report.systems) {
    const SoakCounts& counts = system.counts;
    systems[name] = {
        {"numbers",
         {counts.schedules, counts.fresh, counts.failures, counts.crash_states, counts.states}},
        {"happened", counts.happened},
        {"files", system.files}};
  }
  return Json{{"systems", systems}, {"interrupted", report.interrupted}}.dump();
}

SoakReport report_of(const std::string& text) {
  const Json all = Json::parse(text);
  SoakReport report;
  report.interrupted = all.at("interrupted").get<bool>();
  for (const auto& [name, system] : all.at("systems").items()) {
    const auto numbers = system.at("numbers").get<std::vector<std::uint64_t>>();
    report.systems[name] = {{numbers[0], numbers[1], numbers[2], numbers[3], numbers[4],
                             system.at("happened").get<std::map<std::string, std::uint64_t>>()},
                            system.at("files").get<std::vector<std::string>>()};
  }
  return report;
}

void print_row(const std::string& name, const SoakCounts& counts, std::size_t findings) {
  fmt::print("{:<18}{:>12}{:>12}{:>12}{:>14}{:>12}{:>10}\n", name, counts.schedules, counts.fresh,
             counts.failures, counts.crash_states, counts.states, findings);
}

// "12 cleanings, 3 resizes": what happened at least once, or the names of what never did.
std::string list_of(const std::map<std::string, std::uint64_t>& happened, bool at_least_once) {
  std::string list;
  for (const auto& [name, count] : happened) {
    if ((count > 0) != at_least_once) continue;
    if (!list.empty()) list += ", ";
    list += count > 0 ? fmt::format("{} {}", count, name) : name;
  }
  return list;
}

void print(const SoakReport& report) {
  fmt::print("\n{:<18}{:>12}{:>12}{:>12}{:>14}{:>12}{:>10}\n", "system", "schedules", "drawn anew",
             "failures", "crash states", "states", "findings");
  for (const auto& [name, system] : report.systems) {
    print_row(name, system.counts, system.files.size());
  }
  print_row("all", report.sum(), report.findings());
  fmt::print("\nwhat happened\n");
  for (const auto& [name, system] : report.systems) {
    fmt::print("  {}: {}\n", name, list_of(system.counts.happened, true));
  }
  for (const auto& [name, system] : report.systems) {
    const std::string never = list_of(system.counts.happened, false);
    if (!never.empty()) fmt::print("warning: {}: never happened: {}\n", name, never);
    const auto undecided = system.counts.happened.find(std::string(explore::kUndecided));
    if (undecided == system.counts.happened.end()) continue;
    fmt::print("warning: {}: {} {}; what they keep is not known\n", name, undecided->second,
               explore::kUndecided);
  }
  if (report.interrupted) fmt::print("interrupted before the time was over\n");
  fmt::print("{} {} kept less than expected{}\n", report.findings(),
             report.findings() == 1 ? "setting" : "settings", report.findings() > 0 ? ":" : "");
  for (const auto& [name, system] : report.systems) {
    for (const std::string& file : system.files) {
      fmt::print("  perdura crash --replay {}\n", file);
    }
  }
}

// The case that each thread is running; printed if the process crashes, to help find the cause.
class UnderTest final : public harness::CrashListener {
 public:
  explicit UnderTest(std::size_t threads) : lines_(threads) { harness::tell_of_crashes(this); }
  ~UnderTest() { harness::tell_of_crashes(nullptr); }
  UnderTest(const UnderTest&) = delete;
  UnderTest& operator=(const UnderTest&) = delete;

  void set(std::size_t thread, const explore::CaseSoak& one, std::uint64_t seed) {
    Line& line = lines_[thread];
    line.size = 0;
    const auto end = fmt::format_to_n(line.text.data(), line.text.size(),
                                      "perdura: soak: {}, seed {}, schedule {}\n",
                                      one.where().name(), seed, one.counts().schedules + 1);
    line.size = std::min(end.size, line.text.size());
  }

 private:
  void crashed(int) noexcept override {
    for (const Line& line : lines_) {
      [[maybe_unused]] const auto written = write(STDERR_FILENO, line.text.data(), line.size);
    }
  }
  struct Line {
    std::array<char, 200> text{};
    std::size_t size = 0;
  };
  std::deque<Line> lines_;
};

// The runs of this process. Threads take cases in turn; only one thread at a time runs a case, so
// that its schedules depend on the seed alone. Only the first finding per setting of a system is
// kept, since others are likely to have the same cause.
class Soak {
 public:
  Soak(const SoakArguments& arguments, std::vector<explore::SoakCase> cases,
       const CommandContext& context)
      : arguments_(arguments),
        profile_(profile_named(std::string(kSoakProfile), "", context)),
        end_(Clock::now() + std::chrono::minutes(arguments.minutes)),
        work_(1, context.ranks) {
    seed_ = arguments.seed + static_cast<std::uint64_t>(context.ranks.rank());
    for (explore::SoakCase& one : cases) {
      waiting_.push_back(&cases_.emplace_back(std::move(one), profile_, seed_));
    }
    // The ranks of a job run different seeds in parallel, so each process needs one thread only.
    const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
    threads_ = context.ranks.size() > 1 ? 1 : cores;
    if (arguments.threads > 0) threads_ = arguments.threads;
    threads_ = std::min(threads_, cases_.size());
    under_test_.emplace(threads_);
    work_.begin("soak");
  }

  // Returns when the time is over or all runs are done, or early on a signal; findings until then
  // are kept.
  void run() {
    work_together(threads_, [this](std::size_t thread) { take_turns(thread); });
    work_.close();
    if (problem_) std::rethrow_exception(problem_);
  }

  SoakReport report() const {
    SoakReport report;
    for (const explore::CaseSoak& one : cases_) {
      if (one.counts().schedules == 0) continue;
      report.systems[std::string(one.where().system.info.name)].counts.add(one.counts());
    }
    for (const auto& [system, file] : files_) report.systems[system].files.push_back(file);
    report.interrupted = harness::interrupted();
    return report;
  }

 private:
  using Clock = std::chrono::steady_clock;

  void take_turns(std::size_t thread) {
    try {
      while (explore::CaseSoak* const one = take()) {
        under_test_->set(thread, *one, seed_);
        if (run_once(*one)) give_back(*one);
      }
    } catch (const harness::Interrupted&) {
      stop_ = true;
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!problem_) problem_ = std::current_exception();
      stop_ = true;
    }
  }

  // The next case; null if this thread has nothing more to do.
  explore::CaseSoak* take() {
    const std::lock_guard lock(mutex_);
    if (stop_ || Clock::now() >= end_ || waiting_.empty()) return nullptr;
    explore::CaseSoak* const one = waiting_.front();
    waiting_.pop_front();
    return one;
  }
  void give_back(explore::CaseSoak& one) {
    const std::lock_guard lock(mutex_);
    if (arguments_.runs == 0 || one.counts().schedules < arguments_.runs) waiting_.push_back(&one);
  }

  // Returns false if the case must not be run again.
  bool run_once(explore::CaseSoak& one) {
    const std::string setting =
        explore::explored_name(one.where().system.info, one.where().setting);
    {
      const std::lock_guard lock(mutex_);
      if (found_.contains(setting)) return false;
    }
    const std::uint64_t crash_states = one.counts().crash_states;
    const std::uint64_t states = one.counts().states;
    std::optional<explore::SoakFinding> finding;
    try {
      finding = one.next([this] { return shrinking_ends(); });
    } catch (const UsageError& error) {
      refuse(one.where(), error.what());
      return false;
    }
    crash_states_ += one.counts().crash_states - crash_states;
    states_ += one.counts().states - states;
    // Done first, since showing progress throws if a signal has arrived.
    if (finding) keep(*finding, setting);
    show_progress(++runs_);
    return !finding;
  }

  // Findings at the very end are still simplified for a little while.
  bool shrinking_ends() const {
    constexpr std::chrono::seconds kAfterTheEnd(3);
    return harness::interrupted() || Clock::now() >= end_ + kAfterTheEnd;
  }

  void refuse(const explore::SoakCase& one, const std::string& why) {
    const std::lock_guard lock(mutex_);
    work_.close();
    fmt::print("{}: {}{}\n", one.name(), explore::kRefused, why);
    std::fflush(stdout);
  }

  void keep(const explore::SoakFinding& finding, const std::string& setting) {
    const std::lock_guard lock(mutex_);
    if (!found_.insert(setting).second) return;
    ++found_so_far_;
    const fs::path file =
        write_finding(finding, std::string(kSoakProfile), profile_, arguments_.folder);
    files_.emplace_back(finding.where.system.info.name, file.string());
    work_.close();
    fmt::print("{}\n{}\n\n", finding.text(), text_of_file(file));
    std::fflush(stdout);
  }

  void show_progress(std::uint64_t runs) {
    const std::chrono::duration<double> all = std::chrono::minutes(arguments_.minutes);
    const std::chrono::duration<double> left = end_ - Clock::now();
    const double most = static_cast<double>(arguments_.runs) * static_cast<double>(cases_.size());
    const double of_runs = most > 0 ? static_cast<double>(runs) / most : 0;
    work_.within(fmt::format("{} schedules, {} crash states, {} states, {} findings", runs,
                             crash_states_.load(), states_.load(), found_so_far_.load()),
                 std::clamp(std::max(1 - left / all, of_runs), 0.0, 1.0));
  }

  const SoakArguments& arguments_;
  const sim::Profile profile_;
  const Clock::time_point end_;
  harness::LongWork work_;
  std::uint64_t seed_ = 0;
  std::size_t threads_ = 1;
  std::optional<UnderTest> under_test_;
  std::deque<explore::CaseSoak> cases_;
  std::atomic<std::uint64_t> runs_{0};
  std::atomic<std::uint64_t> crash_states_{0};
  std::atomic<std::uint64_t> found_so_far_{0};
  std::atomic<std::uint64_t> states_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;  // guards the following
  std::deque<explore::CaseSoak*> waiting_;
  std::set<std::string> found_;                             // settings with a finding
  std::vector<std::pair<std::string, std::string>> files_;  // systems and files of findings
  std::exception_ptr problem_;
};

harness::ExitCode soak(const SoakArguments& arguments, CommandContext& context) {
  std::vector<services::ServedSystem> systems;
  for (const services::ServedSystem& system : systems::all_systems()) {
    const bool wanted =
        arguments.systems.empty() || std::find(arguments.systems.begin(), arguments.systems.end(),
                                               system.info.name) != arguments.systems.end();
    if (wanted) systems.push_back(system);
  }
  if (const std::string problem = harness::problem_with_output_folder(arguments.folder);
      !problem.empty()) {
    throw UsageError(fmt::format("soak: --out {}: {}", arguments.folder, problem));
  }
  std::error_code problem;
  fs::create_directories(arguments.folder, problem);
  if (problem) {
    throw UsageError(fmt::format("soak: --out {}: {}", arguments.folder, problem.message()));
  }
  const sim::Profile profile = profile_named(std::string(kSoakProfile), "", context);
  if (context.ranks.is_root()) {
    for (const std::string& line : explore::refused_cases(systems, profile)) {
      fmt::print("{}\n", line);
    }
    std::fflush(stdout);
  }
  std::vector<explore::SoakCase> cases = explore::soak_cases(systems, profile);
  for (explore::SoakCase& one : cases) {
    if (arguments.expected) one.expected = services::guarantee_of_word(*arguments.expected).value();
    one.late_placements = arguments.late_placements;
  }
  Soak soak(arguments, std::move(cases), context);
  soak.run();
  SoakReport report;
  for (const std::string& of_rank : context.ranks.gather_text(to_text(soak.report()))) {
    report.add(report_of(of_rank));
  }
  if (context.ranks.is_root()) print(report);
  return context.ranks.broadcast(report.findings() > 0 ? 1 : 0) != 0 ? harness::ExitCode::failed
                                                                     : harness::ExitCode::done;
}

}  // namespace

void add_soak(harness::Command& program, CommandContext& context) {
  const auto arguments = std::make_shared<SoakArguments>();
  harness::Command& command = program.subcommand(
      "soak",
      "Tries random schedules and failures of systems; ends with 1 if one keeps less than "
      "the table of guarantees says");
  std::vector<std::string> known;
  for (const auto& system : systems::all_systems()) known.emplace_back(system.info.name);
  command.option("systems", arguments->systems, "Only these systems (default: all)").one_of(known);
  command.option("--minutes", arguments->minutes, "How long (default: 1)")
      .whole_number(1, 1'000'000);
  command
      .option("--runs", arguments->runs,
              "At most so many runs of each system, setting and kind of server, "
              "in each process")
      .whole_number(1, 1'000'000'000);
  command
      .option("--seed", arguments->seed,
              "Seed of all choices (default: 1); a further process adds its rank")
      .whole_number(0, ~std::uint64_t{0});
  command
      .option("-j,--threads", arguments->threads,
              "Threads of each process (default: one for each core, or one if there are "
              "several processes)")
      .whole_number(1, 1024);
  command
      .option("--expect", arguments->expected,
              "Looks for runs that keep less than this level, instead of less than the table "
              "of guarantees says")
      .one_of({"atomic", "ordered", "durable-writes", "durable"});
  command.flag("--late-placements", arguments->late_placements,
               "What a device has received may be late in memory, so that a WRITE may complete "
               "before others see it; RDMA allows it, and the table does not consider it");
  command.option("-o,--out", arguments->folder, "Folder for what is found (default: out/soak)");
  command.does([arguments, &context] { return soak(*arguments, context); });
}

}  // namespace perdura::program
