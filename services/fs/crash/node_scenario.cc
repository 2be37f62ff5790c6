#include "services/fs/crash/node_scenario.h"

#include <algorithm>
#include <utility>

namespace perdura::fs {

namespace {

using Kind = Operation::Kind;

class NodeScenario final : public SessionScenario {
 public:
  NodeScenario(const FsSystem& system, FsConfig given, FsCrashPlan plan_given)
      : SessionScenario(system, std::move(given), std::move(plan_given)),
        slots_(std::max<std::size_t>(plan().shared, 2)) {
    config().threads = clients() + 1;
  }

  NodeId node_of_client(std::uint32_t) const override { return 0; }

  Task<> serve(Thread& thread) override {
    if (!std::exchange(made_, true)) {
      co_await system().make(thread, std::string(kName), config());
    }
    const Mounted mounted(*this, co_await system().mount(thread, std::string(kName), config()));
    if (!is_set_up()) {
      const std::unique_ptr<Session> session = files_->attach(thread);
      Program program{*session, slots_};
      co_await set_up(program);
    }
    note_serving(thread);
    changed();
    if (plan().steps_before == 0 && !plan().at_once) note_prepared();
    while (!asked_) co_await sleep_for(kLook);
    co_await inspect_on(thread);
    for (;;) co_await sleep_for(kForEver);
  }

  Task<> use(Thread& thread, std::uint32_t number) override {
    const std::size_t epoch = next_epoch(number);
    if (epoch >= plan().sessions[number].size()) co_return;
    while (!serves(thread.executor.now())) co_await sleep_for(kLook);
    std::shared_ptr<FileSystem> files = files_;
    std::unique_ptr<Session> session = files->attach(thread);
    if (plan().shared > 0 && number == 0) {
      Program program{*session, slots_, number};
      co_await open_files(program);
      shared_open_ = plan().shared;
    }
    while (plan().shared > shared_open_) co_await sleep_for(kLook);
    if (plan().at_once) co_await wait_for_others();
    const SessionPlan& of_session = plan().sessions[number][epoch];
    for (std::size_t i = 0; i < of_session.steps.size(); ++i) {
      if (plan().steps_before > 0 && number == 0 && i == plan().steps_before) note_prepared();
      if (of_session.steps[i].operation.kind == Kind::remount) {
        session.reset();
        files.reset();
        co_await remount(thread, number);
        files = files_;
        session = files->attach(thread);
      } else {
        Program program{*session, slots_, number};
        co_await do_step(program, of_session.steps[i]);
      }
      if (of_session.pause > Picoseconds{}) co_await sleep_for(of_session.pause);
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

  bool waits_for_operation() const override {
    return SessionScenario::waits_for_operation() || (asked_ && !answered_);
  }

 protected:
  void add_events(std::vector<std::uint64_t>& counts) const override {
    if (files_) add_counts(files_->events(), counts);
  }
  Task<std::string> audit() override { co_return co_await files_->audit(); }
  void restore_observations() override {
    SessionScenario::restore_observations();
    asked_ = answered_ = false;
  }

 private:
  // Holds the file system as long as it is mounted.
  class Mounted {
   public:
    Mounted(NodeScenario& scenario, std::shared_ptr<FileSystem> files) : scenario_(scenario) {
      scenario.files_ = std::move(files);
      scenario.shared_open_ = 0;
      std::fill(scenario.slots_.begin(), scenario.slots_.end(), std::nullopt);
    }
    ~Mounted() { scenario_.close(); }
    Mounted(const Mounted&) = delete;
    Mounted& operator=(const Mounted&) = delete;

   private:
    NodeScenario& scenario_;
  };

  void close() {
    if (!files_) return;
    note_closed(files_->events());
    files_.reset();
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
    files_ = co_await system().mount(thread, std::string(kName), config());
    std::fill(slots_.begin(), slots_.end(), std::nullopt);
    co_await yield();
    calling.end();
  }

  Task<> inspect_on(Thread& thread) {
    std::unique_ptr<Session> session = files_->attach(thread);
    {
      Program program{*session, slots_, inspector()};
      co_await look_around(program);
      co_await do_work_of_inspector(program);
      co_await look_around(program);
    }
    session.reset();
    co_await remount(thread, inspector());
    session = files_->attach(thread);
    Program program{*session, slots_, inspector()};
    co_await look_around(program);
    answered_ = true;
    changed();
  }

  Slots slots_;  // all clients share them
  std::size_t shared_open_ = 0;
  std::shared_ptr<FileSystem> files_;
  bool made_ = false;
  bool asked_ = false;
  bool answered_ = false;
};

}  // namespace

std::unique_ptr<services::CrashScenario> node_scenario(const FsSystem& system, FsConfig config,
                                                       FsCrashPlan plan) {
  return std::make_unique<NodeScenario>(system, std::move(config), std::move(plan));
}

}  // namespace perdura::fs
