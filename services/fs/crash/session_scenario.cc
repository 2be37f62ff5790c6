#include "services/fs/crash/session_scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "services/fs/model/model_file_system.h"

namespace perdura::fs {

namespace {

using services::ClientCall;
using services::CrashCall;
using services::ServerFailure;
using services::SystemState;
using Kind = Operation::Kind;

constexpr const char* kFilling = "filling";
constexpr Picoseconds kNext = Nanoseconds(100);  // so close to each other sessions begin
constexpr std::string_view kWithoutSpace = "operations without space";

// New names, data, and removal of both, in whatever state recovery has left the file system.
std::span<const Step> work_of_inspector() {
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

// True if the servers of the session are gone.
bool is_gone(const Answer& answer) { return answer.error == std::errc::not_connected; }

std::string what_was_told(const Answer& answer) {
  if (answer.error != std::errc()) return std::make_error_code(answer.error).message();
  return answer.text.empty() || answer.tree ? "done" : answer.text;
}

}  // namespace

SessionScenario::SessionScenario(const FsSystem& system, FsConfig config, FsCrashPlan plan)
    : system_(system),
      config_(std::move(config)),
      plan_(std::move(plan)),
      epochs_(plan_.sessions.size()),
      closed_(system.events.size()) {
  config_.size = plan_.size;
  specification() = Specification(ModelState(
      Model({.root_mode = config_.root_mode, .now = config_.now}), {{kRoot, kRootInode}}));
  specification().set_may_be_full(plan_.is_almost_full);
}

std::uint64_t SessionScenario::planned_calls(std::size_t failures) const {
  std::uint64_t calls = plan_.shared > 0 ? kMostCallsOfOpening : 0;
  for (const std::vector<SessionPlan>& session : plan_.sessions) {
    if (failures >= session.size()) continue;
    // Each look-up is followed by a hold, which is released at the end.
    for (const Step& step : session[failures].steps) {
      calls += calls_of(step) * (plan_.at_once ? 3 : 1);
    }
  }
  return calls;
}

services::Verdict SessionScenario::judge(std::span<const ServerFailure> failures,
                                         const services::ToJudge& judged) const {
  services::Verdict verdict = judge_sessions(failures, judged);
  if (!problem().empty() || verdict.holds_all()) return verdict;
  const std::string difference = how_it_differs();
  for (const services::Condition condition : services::kConditions) {
    if (verdict.holds(condition)) continue;
    services::Loss loss = verdict.loss(condition);
    loss.why.insert(0, difference);
    verdict.set(condition, std::move(loss));
  }
  return verdict;
}

std::map<std::string, std::uint64_t, std::less<>> SessionScenario::events() const {
  std::vector<std::uint64_t> counts = closed_;
  add_events(counts);
  std::map<std::string, std::uint64_t, std::less<>> events;
  for (std::size_t i = 0; i < system_.events.size(); ++i) {
    events[std::string(system_.events[i].name)] = counts[i];
  }
  if (plan_.is_almost_full) events[std::string(kWithoutSpace)] = without_space_;
  return events;
}

void SessionScenario::add_counts(std::span<const std::uint64_t> events,
                                 std::vector<std::uint64_t>& counts) {
  for (std::size_t i = 0; i < std::min(counts.size(), events.size()); ++i) counts[i] += events[i];
}

void SessionScenario::describe(SystemState& state) const {
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

void SessionScenario::explain(const services::Call<Operation>& call, CrashCall& shown) const {
  shown.what = text_of(call.operation);
  if (call.answered) shown.told = what_was_told(call.operation.answer);
}

std::string SessionScenario::observed(const services::Call<Operation>& call) const {
  return specification().text(call) + call.operation.answer.text;
}

void SessionScenario::snapshot_observations() {
  HistoryScenario::snapshot_observations();
  kept_closed_ = closed_;
}

void SessionScenario::restore_observations() {
  HistoryScenario::restore_observations();
  closed_ = kept_closed_;
  of_inspector_ = 0;
}

// Gives the operation contents and a time that no other operation has. Those of the inspector do
// not depend on the number of operations before.
void SessionScenario::distinguish(Operation& operation, std::uint32_t client) {
  const std::uint64_t number = client == inspector() ? 1'000'000 + ++of_inspector_ : ++number_;
  operation.content = number;
  operation.now = {static_cast<std::int64_t>(1000 + number), static_cast<std::uint32_t>(number)};
}

Task<> SessionScenario::set_up(Program& program) {
  std::optional<ModelState> state = specification().initial();
  for (const Step& step : set_up_steps()) co_await do_step(program, step);
  if (plan_.is_almost_full) co_await fill(program);
  for (const ClientCall<Operation>& one : history()) {
    const auto next = specification().after(*state, one.call.operation, true);
    const std::errc error = one.call.operation.answer.error;
    const bool is_full = plan_.is_almost_full && error == std::errc::no_space_on_device;
    if (!one.call.answered || next.size() != 1 || (error != std::errc() && !is_full)) {
      note_problem(fmt::format("cannot be set up: {}", specification().text(one.call)));
      co_return;
    }
    state = next.front();
  }
  history().clear();
  specification() = Specification(*state);
  specification().set_may_be_full(plan_.is_almost_full);
  program.releases.clear();  // they are not in the history any more
  is_set_up_ = true;
}

Task<> SessionScenario::wait_for_others() {
  if (++ready_ > clients()) co_return;  // they go on after a failure
  while (ready_ < clients()) co_await sleep_for(kNext);
  note_prepared();
}

// Leaves less space than an append of `kLongest`, so that some of the later operations succeed
// and others do not.
Task<> SessionScenario::fill(Program& program) {
  constexpr Bytes kLongest = 16 * KiB;
  const Step create{.operation = {.kind = Kind::create, .mode = S_IFREG | 0644}, .path = kFilling};
  const Step append{.operation = {.kind = Kind::append, .length = kLongest}, .path = kFilling};
  co_await do_step(program, create);
  // A file system that is never full is as if it were larger.
  for (Bytes filled = 0; filled < capacity(); filled += kLongest) {
    co_await do_step(program, append);
    if (history().back().call.operation.answer.error != std::errc()) break;
  }
}

// Each group of stores has as much room as a whole file system on one node.
Bytes SessionScenario::capacity() const {
  std::set<std::uint32_t> groups;
  for (const FsServerNode& server : config_.servers) {
    if (server.role == FsRole::store) groups.insert(server.group);
  }
  return plan_.size * std::max<std::size_t>(groups.size(), 1);
}

Task<bool> SessionScenario::open_files(Program& program) {
  constexpr const char* kFiles[] = {"A/foo", "bar", "B/hard", "A/new", "B/new", "new"};
  Slots& slots = program.slots;
  std::size_t open = 0;
  for (const char* const path : kFiles) {
    if (open == plan_.shared) break;
    std::string one = path;
    const Answer found = co_await look_up(program, std::move(one));
    if (is_gone(found)) co_return false;
    const bool known = std::any_of(slots.begin(), slots.end(), [&](const auto& slot) {
      return slot && !found.inodes.empty() && *slot == found.inodes.front();
    });
    if (found.error != std::errc() || known) continue;
    Operation hold{.kind = Kind::hold, .inode = found.inodes.front()};
    const Answer held = co_await call(program, std::move(hold));
    if (is_gone(held)) co_return false;
    if (held.error == std::errc()) slots[open++] = found.inodes.front();
  }
  while (open < plan_.shared) {
    Operation create{.kind = Kind::create_unnamed, .mode = S_IFREG | 0600};
    distinguish(create, program.number);
    const Answer made = co_await call(program, std::move(create));
    if (is_gone(made)) co_return false;
    if (!made.inodes.empty()) slots[open] = made.inodes.front();
    ++open;
  }
  co_return true;
}

// Calls the operation and records it with its answer. One that ends with not_connected has no
// answer; nor has a release before it, which has no error to return.
Task<Answer> SessionScenario::call(Program& program, Operation operation) {
  // A thread that has run without a pause is ahead of the simulated time: others would see its
  // stores too early.
  co_await yield();
  operation.mount = program.mount;
  program.last = Executor::current().now();
  const std::size_t place = history().size();
  Calling calling(*this, operation, program.number);
  Answer answer = co_await perform(program.session, operation);
  // The client has the answer only after this.
  co_await yield();
  program.last = Executor::current().now();
  if (is_gone(answer)) {
    for (const std::size_t release : program.releases) history()[release].call.answered = false;
    program.releases.clear();
    co_return answer;
  }
  if (operation.kind == Kind::release) {
    program.releases.push_back(place);
  } else {
    program.releases.clear();
  }
  calling.operation().answer = answer;
  if (is_set_up_ && answer.error == std::errc::no_space_on_device) ++without_space_;
  calling.end();
  co_return answer;
}

Task<Answer> SessionScenario::look_up(Program& program, std::string path) {
  Answer found{.inodes = {kRoot}};
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    Operation operation{.kind = Kind::look_up, .inode = found.inodes.front()};
    operation.name = path.substr(begin, end - begin);
    found = co_await call(program, std::move(operation));
    if (found.error != std::errc()) break;
    if (holds_what_it_finds(program)) {
      Operation hold{.kind = Kind::hold, .inode = found.inodes.front()};
      const Answer held = co_await call(program, std::move(hold));
      if (held.error != std::errc()) co_return held;
      program.found.push_back(found.inodes.front());
    }
    begin = end + 1;
  }
  co_return found;
}

// Others may remove at any time what a step has found, so that nobody may use it by its number
// unless it is held. Alone a session knows what exists.
bool SessionScenario::holds_what_it_finds(const Program& program) const {
  return plan_.at_once && is_set_up_ && program.number != inspector();
}

Task<bool> SessionScenario::do_step(Program& program, Step step) {
  bool is_connected = co_await do_step_on_what_it_finds(program, std::move(step));
  for (const InodeId inode : std::exchange(program.found, {})) {
    if (!is_connected) break;
    Operation release{.kind = Kind::release, .inode = inode};
    const Answer released = co_await call(program, std::move(release));
    is_connected = !is_gone(released);
  }
  co_return is_connected;
}

Task<bool> SessionScenario::do_step_on_what_it_finds(Program& program, Step step) {
  Slots& slots = program.slots;
  Operation operation = step.operation;
  const bool names = takes_name(operation);
  if (step.slot) {
    if (!slots[*step.slot]) co_return true;
    operation.inode = *slots[*step.slot];
  } else {
    const SplitPath place = split_path(step.path);
    if (names) operation.name = place.name;
    std::string path = names ? place.directory : step.path;
    const Answer found = co_await look_up(program, std::move(path));
    if (found.error != std::errc()) co_return !is_gone(found);
    operation.inode = found.inodes.front();
  }
  if (!step.new_path.empty()) {
    SplitPath place = split_path(step.new_path);
    const Answer found = co_await look_up(program, std::move(place.directory));
    if (found.error != std::errc()) co_return !is_gone(found);
    operation.directory = found.inodes.front();
    operation.new_name = place.name;
  }
  distinguish(operation, program.number);
  const Answer answer = co_await call(program, operation);
  if (operation.kind == Kind::release && step.slot) slots[*step.slot].reset();
  if (!step.into || answer.error != std::errc()) co_return !is_gone(answer);
  slots[*step.into] =
      operation.kind == Kind::create_unnamed ? answer.inodes.front() : operation.inode;
  co_return true;
}

Task<> SessionScenario::do_work_of_inspector(Program& program) {
  for (const Step& step : work_of_inspector()) {
    const bool is_connected = co_await do_step(program, step);
    if (!is_connected) note_problem("the connection to the recovered file system breaks");
  }
}

Task<> SessionScenario::look_around(Program& program) {
  const std::string contradiction = co_await audit();
  if (!contradiction.empty()) note_problem(contradiction);
  Operation read_tree{.kind = Kind::read_tree};
  const Answer found = co_await call(program, std::move(read_tree));
  // Inodes without names that nobody holds must be gone, and their numbers free.
  const bool held = std::any_of(program.slots.begin(), program.slots.end(),
                                [](const auto& slot) { return slot; });
  if (found.tree && !held) co_await check_free_inodes(program, found.tree->files.size());
}

Task<> SessionScenario::check_free_inodes(Program& program, std::uint64_t named) {
  constexpr Picoseconds kPause = Microseconds(100);
  for (Picoseconds waited{};; waited += kPause) {
    const Result<Statistics> statistics = co_await program.session.statistics();
    if (!statistics) co_return;
    const std::uint64_t used = statistics->inodes - statistics->free_inodes;
    if (used == named) co_return;
    if (waited >= patience()) {
      note_problem(fmt::format("{} inodes are in use, and {} have names", used, named));
      co_return;
    }
    co_await sleep_for(kPause);
  }
}

// The differences between the first tree that the inspector has found and, for a single session, the
// states before and after the session's last operation; for several ones, the state after all
// operations that have been answered, in the order of the answers.
std::string SessionScenario::how_it_differs() const {
  if (clients() > 1) return how_it_differs_from_answered();
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

std::string SessionScenario::how_it_differs_from_answered() const {
  const auto found =
      std::find_if(history().begin(), history().end(), [](const ClientCall<Operation>& one) {
        return one.call.operation.kind == Kind::read_tree && one.call.answered;
      });
  if (found == history().end()) return "";
  std::vector<const services::Call<Operation>*> answered;
  for (const ClientCall<Operation>& one : history()) {
    if (one.client != inspector() && one.call.answered) answered.push_back(&one.call);
  }
  std::stable_sort(answered.begin(), answered.end(),
                   [](const auto* a, const auto* b) { return a->end < b->end; });
  ModelState state = specification().initial();
  for (const services::Call<Operation>* const call : answered) {
    auto next = specification().after(state, call->operation, true);
    if (!next.empty()) state = std::move(next.front());
  }
  return fmt::format(
      "  compared with what has been answered: {}\n",
      difference(*found->call.operation.answer.tree, tree_of(state.model(), {.times = true})));
}

std::string SessionScenario::how_it_differs_between(const ModelState& before,
                                                    const ModelState& after) const {
  for (const ClientCall<Operation>& one : history()) {
    if (one.call.operation.kind != Kind::read_tree || !one.call.answered) continue;
    const Tree& found = *one.call.operation.answer.tree;
    return fmt::format("  compared with before the last operation: {}\n  after it: {}\n",
                       difference(found, tree_of(before.model(), {.times = true})),
                       difference(found, tree_of(after.model(), {.times = true})));
  }
  return "";
}

}  // namespace perdura::fs
