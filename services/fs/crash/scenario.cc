#include "services/fs/crash/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "services/fs/crash/plan.h"
#include "services/fs/crash/specification.h"
#include "services/fs/model/model_file_system.h"
#include "services/history_scenario.h"

namespace perdura::fs {

namespace {

using services::ClientCall;
using services::CrashCall;
using services::Event;
using services::ServerFailure;
using services::SystemState;
using Kind = Operation::Kind;

constexpr Picoseconds kLook = Microseconds(5);  // interval of polling
constexpr Picoseconds kForEver = std::chrono::seconds(1);
constexpr std::string_view kName = "files";
constexpr const char* kFilling = "filling";
constexpr std::string_view kWithoutSpace = "operations without space";
// open_shared() makes ten look-ups, and holds or makes two inodes.
constexpr std::uint64_t kMostCallsOfOpening = 12;

constexpr services::CrashSchedule kSchedules[] = {
    {"session", "a session does operations of all kinds on a small tree"},
    {"sessions", "two sessions change the same file and the same names"},
};

class FsCrashScenario final : public services::HistoryScenario<Specification> {
 public:
  FsCrashScenario(const FsSystem& system, FsConfig config, FsCrashPlan plan)
      : system_(system),
        config_(std::move(config)),
        plan_(std::move(plan)),
        epochs_(plan_.sessions.size()),
        slots_(std::max<std::size_t>(plan_.shared, 2)),
        closed_(system.events.size()) {
    config_.size = plan_.size;
    config_.threads = clients() + 1;
    specification() = Specification(ModelState(
        Model({.root_mode = config_.root_mode, .now = config_.now}), {{kRoot, kRootInode}}));
    specification().set_may_be_full(plan_.is_almost_full);
  }

  std::uint32_t clients() const override {
    return static_cast<std::uint32_t>(plan_.sessions.size());
  }
  NodeId node_of_client(std::uint32_t) const override { return 0; }
  std::uint64_t planned_calls(std::size_t failures) const override {
    std::uint64_t calls = plan_.shared > 0 ? kMostCallsOfOpening : 0;
    for (const std::vector<SessionPlan>& session : plan_.sessions) {
      if (failures >= session.size()) continue;
      for (const Step& step : session[failures].steps) calls += calls_of(step);
    }
    return calls;
  }

  bool prepares() const override { return true; }

  Task<> serve(Thread& thread) override {
    if (!std::exchange(made_, true)) {
      co_await system_.make(thread, std::string(kName), config_);
    }
    const Mounted mounted(*this, co_await system_.mount(thread, std::string(kName), config_));
    if (!is_set_up_) {
      const std::unique_ptr<Session> session = files_->attach(thread);
      co_await set_up(*session);
    }
    note_serving(thread);
    changed();
    if (plan_.steps_before == 0) note_prepared();
    while (!asked_) co_await sleep_for(kLook);
    co_await inspect_on(thread);
    for (;;) co_await sleep_for(kForEver);
  }

  Task<> use(Thread& thread, std::uint32_t number) override {
    const std::size_t epoch = epochs_[number]++;
    if (epoch >= plan_.sessions[number].size()) co_return;
    while (!serves(thread.executor.now())) co_await sleep_for(kLook);
    std::shared_ptr<FileSystem> files = files_;
    std::unique_ptr<Session> session = files->attach(thread);
    if (plan_.shared > 0 && number == 0) co_await open_shared(*session);
    while (plan_.shared > shared_open_) co_await sleep_for(kLook);
    const SessionPlan& plan = plan_.sessions[number][epoch];
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      if (plan_.steps_before > 0 && number == 0 && i == plan_.steps_before) note_prepared();
      if (plan.steps[i].operation.kind == Kind::remount) {
        session.reset();
        files.reset();
        co_await remount(thread, number);
        files = files_;
        session = files->attach(thread);
      } else {
        co_await do_step(*session, number, plan.steps[i]);
      }
      if (plan.pause > Picoseconds{}) co_await sleep_for(plan.pause);
    }
    // A run ends with its clients, but a failure may also come after the last operation.
    co_await sleep_for(kLook);
  }

  // The inspector runs on a thread of the node itself, as a program there.
  Task<> inspect(Thread& thread) override {
    while (clients_at_work() > 0 || !serves(thread.executor.now())) co_await sleep_for(kLook);
    asked_ = true;
    while (!answered_) co_await sleep_for(kLook);
  }

  services::Verdict judge(std::span<const ServerFailure> failures,
                          const services::ToJudge& judged) const override {
    services::Verdict verdict = HistoryScenario::judge(failures, judged);
    if (clients() > 1 || !problem().empty() || verdict.holds_all()) return verdict;
    const std::string difference = how_it_differs();
    for (const services::Condition condition : services::kConditions) {
      if (verdict.holds(condition)) continue;
      services::Loss loss = verdict.loss(condition);
      loss.why.insert(0, difference);
      verdict.set(condition, std::move(loss));
    }
    return verdict;
  }

  std::map<std::string, std::uint64_t, std::less<>> events() const override {
    std::map<std::string, std::uint64_t, std::less<>> events;
    std::vector<std::uint64_t> mounted(system_.events.size());
    if (files_) mounted = files_->events();
    for (std::size_t i = 0; i < system_.events.size(); ++i) {
      events[std::string(system_.events[i].name)] = closed_[i] + mounted.at(i);
    }
    if (plan_.is_almost_full) events[std::string(kWithoutSpace)] = without_space_;
    return events;
  }
  std::span<const Event> expected_events() const override { return system_.events; }

  void describe(SystemState& state) const override {
    CrashScenario::describe(state);
    std::map<Kind, std::uint64_t> kinds;
    std::map<InodeId, std::uint64_t> inodes;
    for (const std::size_t place : under_way()) {
      const Operation& operation = history()[place].call.operation;
      ++kinds[operation.kind];
      ++inodes[operation.inode];
    }
    for (const auto& [kind, count] : kinds) {
      state.add("kind", static_cast<std::uint64_t>(kind));
      state.add("of it", count);
    }
    for (const auto& [inode, count] : inodes) state.add("of an inode", count);
  }

  bool waits_for_operation() const override {
    return HistoryScenario::waits_for_operation() || (asked_ && !answered_);
  }

 protected:
  void explain(const services::Call<Operation>& call, CrashCall& shown) const override {
    shown.what = fs::text_of(call.operation);
    if (call.answered) shown.told = text_of(call.operation.answer);
  }
  std::string observed(const services::Call<Operation>& call) const override {
    return specification().text(call) + call.operation.answer.text;
  }
  void snapshot_observations() override {
    HistoryScenario::snapshot_observations();
    kept_closed_ = closed_;
  }
  void restore_observations() override {
    HistoryScenario::restore_observations();
    closed_ = kept_closed_;
    of_inspector_ = 0;
    asked_ = answered_ = false;
  }

 private:
  // Holds the file system as long as it is mounted.
  class Mounted {
   public:
    Mounted(FsCrashScenario& scenario, std::shared_ptr<FileSystem> files) : scenario_(scenario) {
      scenario.files_ = std::move(files);
      scenario.shared_open_ = 0;
      std::fill(scenario.slots_.begin(), scenario.slots_.end(), std::nullopt);
    }
    ~Mounted() { scenario_.close(); }
    Mounted(const Mounted&) = delete;
    Mounted& operator=(const Mounted&) = delete;

   private:
    FsCrashScenario& scenario_;
  };

  void close() {
    if (!files_) return;
    const std::vector<std::uint64_t> events = files_->events();
    for (std::size_t i = 0; i < closed_.size(); ++i) closed_[i] += events.at(i);
    files_.reset();
  }

  // Gives the operation contents and a time that no other operation has. Those of the inspector do
  // not depend on the number of operations before.
  void distinguish(Operation& operation, std::uint32_t client) {
    const std::uint64_t number = client == inspector() ? 1'000'000 + ++of_inspector_ : ++number_;
    operation.content = number;
    operation.now = {static_cast<std::int64_t>(1000 + number), static_cast<std::uint32_t>(number)};
  }

  // The operations before failures are tried. Histories start with the state that these lead to.
  Task<> set_up(Session& session) {
    std::optional<ModelState> state = specification().initial();
    for (const Step& step : set_up_steps()) co_await do_step(session, 0, step);
    if (plan_.is_almost_full) co_await fill(session);
    for (const ClientCall<Operation>& one : history()) {
      const auto next = specification().after(*state, one.call.operation, true);
      const std::errc error = one.call.operation.answer.error;
      const bool is_full = plan_.is_almost_full && error == std::errc::no_space_on_device;
      if (next.size() != 1 || (error != std::errc() && !is_full)) {
        note_problem(fmt::format("cannot be set up: {}", specification().text(one.call)));
        co_return;
      }
      state = next.front();
    }
    history().clear();
    specification() = Specification(*state);
    specification().set_may_be_full(plan_.is_almost_full);
    is_set_up_ = true;
  }

  // Leaves less space than an append of `kLongest`, so that some of the later operations succeed
  // and others do not.
  Task<> fill(Session& session) {
    constexpr Bytes kLongest = 16 * KiB;
    const Step create{.operation = {.kind = Kind::create, .mode = S_IFREG | 0644},
                      .path = kFilling};
    const Step append{.operation = {.kind = Kind::append, .length = kLongest}, .path = kFilling};
    co_await do_step(session, 0, create);
    // A file system that is never full is as if it were larger.
    for (Bytes filled = 0; filled < plan_.size; filled += kLongest) {
      co_await do_step(session, 0, append);
      if (history().back().call.operation.answer.error != std::errc()) break;
    }
  }

  // Opens existing files, and makes unnamed ones if there are too few.
  Task<> open_shared(Session& session) {
    constexpr const char* kFiles[] = {"A/foo", "bar", "B/hard", "A/new", "B/new", "new"};
    std::size_t open = 0;
    for (const char* const path : kFiles) {
      if (open == plan_.shared) break;
      std::string one = path;
      const Answer found = co_await look_up(session, 0, std::move(one));
      const bool known = std::any_of(slots_.begin(), slots_.end(), [&](const auto& slot) {
        return slot && !found.inodes.empty() && *slot == found.inodes.front();
      });
      if (found.error != std::errc() || known) continue;
      Operation hold{.kind = Kind::hold, .inode = found.inodes.front()};
      co_await call(session, 0, std::move(hold));
      slots_[open++] = found.inodes.front();
    }
    while (open < plan_.shared) {
      Operation create{.kind = Kind::create_unnamed, .mode = S_IFREG | 0600};
      distinguish(create, 0);
      const Answer made = co_await call(session, 0, std::move(create));
      if (!made.inodes.empty()) slots_[open] = made.inodes.front();
      ++open;
    }
    shared_open_ = open;
  }

  // Calls the operation and records it with its answer.
  Task<Answer> call(Session& session, std::uint32_t client, Operation operation) {
    // A thread that has run without a pause is ahead of the simulated time: others would see its
    // stores too early.
    co_await yield();
    Calling calling(*this, operation, client);
    Answer answer = co_await perform(session, operation);
    // The client has the answer only after this.
    co_await yield();
    calling.operation().answer = answer;
    if (is_set_up_ && answer.error == std::errc::no_space_on_device) ++without_space_;
    calling.end();
    co_return answer;
  }

  // No session may exist.
  Task<> remount(Thread& thread, std::uint32_t client) {
    co_await yield();
    Calling calling(*this, {.kind = Kind::remount}, client);
    {
      const std::shared_ptr<FileSystem> files = files_;
      co_await files->unmount();
    }
    close();
    files_ = co_await system_.mount(thread, std::string(kName), config_);
    std::fill(slots_.begin(), slots_.end(), std::nullopt);
    co_await yield();
    calling.end();
  }

  Task<Answer> look_up(Session& session, std::uint32_t client, std::string path) {
    Answer found{.inodes = {kRoot}};
    for (std::size_t begin = 0; begin < path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      Operation operation{.kind = Kind::look_up, .inode = found.inodes.front()};
      operation.name = path.substr(begin, end - begin);
      found = co_await call(session, client, std::move(operation));
      if (found.error != std::errc()) break;
      begin = end + 1;
    }
    co_return found;
  }

  Task<> do_step(Session& session, std::uint32_t client, Step step) {
    Operation operation = step.operation;
    const bool names = takes_name(operation);
    if (step.slot) {
      if (!slots_[*step.slot]) co_return;
      operation.inode = *slots_[*step.slot];
    } else {
      const SplitPath place = split_path(step.path);
      if (names) operation.name = place.name;
      std::string path = names ? place.directory : step.path;
      const Answer found = co_await look_up(session, client, std::move(path));
      if (found.error != std::errc()) co_return;
      operation.inode = found.inodes.front();
    }
    if (!step.new_path.empty()) {
      SplitPath place = split_path(step.new_path);
      const Answer found = co_await look_up(session, client, std::move(place.directory));
      if (found.error != std::errc()) co_return;
      operation.directory = found.inodes.front();
      operation.new_name = place.name;
    }
    distinguish(operation, client);
    const Answer answer = co_await call(session, client, operation);
    if (operation.kind == Kind::release && step.slot) slots_[*step.slot].reset();
    if (!step.into || answer.error != std::errc()) co_return;
    slots_[*step.into] =
        operation.kind == Kind::create_unnamed ? answer.inodes.front() : operation.inode;
  }

  Task<> inspect_on(Thread& thread) {
    std::unique_ptr<Session> session = files_->attach(thread);
    co_await look_around(*session);
    for (const Step& step : work_of_inspector()) co_await do_step(*session, inspector(), step);
    co_await look_around(*session);
    session.reset();
    co_await remount(thread, inspector());
    session = files_->attach(thread);
    co_await look_around(*session);
    answered_ = true;
    changed();
  }

  Task<> look_around(Session& session) {
    const std::string contradiction = co_await files_->audit();
    if (!contradiction.empty()) note_problem(contradiction);
    Operation read_tree{.kind = Kind::read_tree};
    const Answer found = co_await call(session, inspector(), std::move(read_tree));
    // Inodes without names that nobody holds must be gone, and their numbers free.
    const bool held =
        std::any_of(slots_.begin(), slots_.end(), [](const auto& slot) { return slot; });
    if (!found.tree || held) co_return;
    const Result<Statistics> statistics = co_await session.statistics();
    if (!statistics) co_return;
    const std::uint64_t used = statistics->inodes - statistics->free_inodes;
    if (used != found.tree->files.size()) {
      note_problem(
          fmt::format("{} inodes are in use, and {} have names", used, found.tree->files.size()));
    }
  }

  // Checks that the file system can be used in whatever state recovery has left it: new names,
  // data, and removal of both.
  static std::span<const Step> work_of_inspector() {
    constexpr std::uint32_t kPrivate = S_IFREG | 0600;
    static const std::vector<Step> steps{
        {.operation = {.kind = Kind::create, .mode = kPrivate}, .path = "inspected"},
        {.operation = {.kind = Kind::write, .length = 5000}, .path = "inspected"},
        {.operation = {.kind = Kind::read, .length = 9000}, .path = "inspected"},
        {.operation = {.kind = Kind::create, .mode = S_IFDIR | 0700}, .path = "work"},
        {.operation = {.kind = Kind::rename}, .path = "inspected", .new_path = "work/kept"},
        {.operation = {.kind = Kind::write, .offset = 10, .length = 10}, .path = "A/foo"},
        {.operation = {.kind = Kind::append, .length = 4096}, .path = "B/bar"},
        {.operation = {.kind = Kind::create, .mode = kPrivate}, .path = "gone"},
        {.operation = {.kind = Kind::write, .length = 100}, .path = "gone"},
        {.operation = {.kind = Kind::unlink}, .path = "gone"},
    };
    return steps;
  }

  // For a single session: the differences between the first tree that the inspector has found and
  // the states before and after the session's last operation.
  std::string how_it_differs() const {
    ModelState state = specification().initial();
    for (const ClientCall<Operation>& one : history()) {
      const Operation& operation = one.call.operation;
      if (operation.kind == Kind::read_tree) {
        const std::string what =
            difference(*operation.answer.tree, tree_of(state.model(), {.times = true}));
        return what.empty() ? "" : fmt::format("  found after it: {}\n", what);
      }
      auto next = specification().after(state, operation, one.call.answered);
      if (next.empty()) return fmt::format("  not possible: {}\n", specification().text(one.call));
      if (!one.call.answered) {
        return how_it_differs_between(state, next.front());
      }
      state = std::move(next.front());
    }
    return "";
  }
  std::string how_it_differs_between(const ModelState& before, const ModelState& after) const {
    for (const ClientCall<Operation>& one : history()) {
      if (one.call.operation.kind != Kind::read_tree || !one.call.answered) continue;
      const Tree& found = *one.call.operation.answer.tree;
      return fmt::format("  compared with before the last operation: {}\n  after it: {}\n",
                         difference(found, tree_of(before.model(), {.times = true})),
                         difference(found, tree_of(after.model(), {.times = true})));
    }
    return "";
  }

  static std::string text_of(const Answer& answer) {
    if (answer.error != std::errc()) return std::make_error_code(answer.error).message();
    return answer.text.empty() || answer.tree ? "done" : answer.text;
  }

  const FsSystem& system_;
  FsConfig config_;
  const FsCrashPlan plan_;
  std::vector<std::size_t> epochs_;
  std::vector<std::optional<InodeId>> slots_;  // inodes that are held
  std::size_t shared_open_ = 0;
  std::shared_ptr<FileSystem> files_;
  std::vector<std::uint64_t> closed_;  // event counts of earlier mounts
  std::uint64_t number_ = 0;           // operations so far
  std::uint64_t without_space_ = 0;    // operations that failed for lack of space
  std::uint64_t of_inspector_ = 0;
  bool made_ = false;
  bool is_set_up_ = false;
  bool asked_ = false;
  bool answered_ = false;
  std::vector<std::uint64_t> kept_closed_;
};

FsConfig config_for(const FsSystem& system, const services::CrashSetup& setup) {
  FsConfig config{.now = {999, 0}, .parameters = setup.parameters};
  services::add_missing(system.small, config.parameters);
  return config;
}

std::unique_ptr<services::CrashScenario> scenario_of(const FsSystem& system, FsConfig config,
                                                     FsCrashPlan plan) {
  return std::make_unique<FsCrashScenario>(system, std::move(config), std::move(plan));
}

}  // namespace

std::span<const services::CrashSchedule> fs_schedules() { return kSchedules; }

services::CrashHistory fs_crash_history(const FsSystem& system, const services::CrashSetup& setup,
                                        const services::CrashSchedule& schedule) {
  const FsCrashPlan plan =
      schedule.name == kSchedules[0].name ? one_session_plan() : two_sessions_plan();
  return [&system, plan, config = config_for(system, setup)] {
    return scenario_of(system, config, plan);
  };
}

services::CrashSequence fs_crash_sequence(const FsSystem& system, const services::CrashSetup& setup,
                                          std::uint32_t length, std::uint64_t number) {
  return {name_of_sequence(length, number),
          [&system, plan = sequence_plan(length, number), config = config_for(system, setup)] {
            return scenario_of(system, config, plan);
          }};
}

std::unique_ptr<services::CrashScenario> fs_generated_scenario(const FsSystem& system,
                                                               const services::CrashSetup& setup,
                                                               pmem::Tape& tape,
                                                               std::uint32_t failures) {
  return scenario_of(system, config_for(system, setup), generated_plan(tape, failures));
}

}  // namespace perdura::fs
