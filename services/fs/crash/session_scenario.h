// The base of the scenarios in which failures of a file system are tried: what sessions do, what
// the inspector does after recovery, and how both are judged. Who holds the file system, and how a
// client mounts it, is different for one node (node_scenario.h) and for a cluster
// (cluster_scenario.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "services/fs/crash/plan.h"
#include "services/fs/crash/specification.h"
#include "services/fs/fs.h"
#include "services/history_scenario.h"

namespace perdura::fs {

class SessionScenario : public services::HistoryScenario<Specification> {
 public:
  std::uint32_t clients() const override {
    return static_cast<std::uint32_t>(plan_.sessions.size());
  }
  std::uint64_t planned_calls(std::size_t failures) const override;
  bool prepares() const override { return true; }
  services::Verdict judge(std::span<const services::ServerFailure> failures,
                          const services::ToJudge& judged) const override;
  std::map<std::string, std::uint64_t, std::less<>> events() const override;
  std::span<const services::Event> expected_events() const override { return system_.events; }
  void describe(services::SystemState& state) const override;

 protected:
  static constexpr Picoseconds kLook = Microseconds(5);  // interval of polling
  static constexpr Picoseconds kForEver = std::chrono::seconds(1);
  static constexpr std::string_view kName = "files";
  // open_files() makes ten look-ups, and holds or makes two inodes.
  static constexpr std::uint64_t kMostCallsOfOpening = 12;

  using Slots = std::vector<std::optional<InodeId>>;  // inodes that are held
  // A client, or the inspector, with its session.
  struct Program {
    Session& session;
    Slots& slots;
    std::uint32_t number = 0;  // in the history
    std::uint32_t mount = 0;   // Operation::mount
    // Its releases, as indexes in history(), since the servers have answered another operation.
    std::vector<std::size_t> releases{};
    Time last{};                   // when its last call began or ended
    std::vector<InodeId> found{};  // by the step that it does, which holds them
  };

  SessionScenario(const FsSystem& system, FsConfig config, FsCrashPlan plan);

  // Contradictions in what is stored, as of FileSystem::audit().
  virtual Task<std::string> audit() = 0;
  // The events of all who have it open at present, added to `counts`, which are in the order of
  // FsSystem::events.
  virtual void add_events(std::vector<std::uint64_t>& counts) const = 0;
  // For how long inodes that nobody names or holds any more may still be in use.
  virtual Picoseconds patience() const { return {}; }
  virtual services::Verdict judge_sessions(std::span<const services::ServerFailure> failures,
                                           const services::ToJudge& judged) const {
    return HistoryScenario::judge(failures, judged);
  }

  // The operations before failures are tried. Histories start with the state that these lead to.
  Task<> set_up(Program& program);
  // Waits until all sessions of the plan have come so far, if they begin at the same time, and then
  // lets failures be tried.
  Task<> wait_for_others();
  // Opens as many existing files as the plan shares, and makes unnamed ones if there are too few.
  // This and do_step() return false if the servers are gone.
  Task<bool> open_files(Program& program);
  Task<bool> do_step(Program& program, Step step);
  // Two parts of an inspection: reads everything, and checks that the file system can be used.
  Task<> look_around(Program& program);
  Task<> do_work_of_inspector(Program& program);

  void explain(const services::Call<Operation>& call, services::CrashCall& shown) const override;
  std::string observed(const services::Call<Operation>& call) const override;
  void snapshot_observations() override;
  void restore_observations() override;

  const FsSystem& system() const { return system_; }
  FsConfig& config() { return config_; }
  const FsConfig& config() const { return config_; }
  const FsCrashPlan& plan() const { return plan_; }
  bool is_set_up() const { return is_set_up_; }
  // The place of a client's next part of the plan; counts its calls.
  std::size_t next_epoch(std::uint32_t client) { return epochs_[client]++; }
  // Counts what has happened to one that is no longer open.
  void note_closed(std::span<const std::uint64_t> events) { add_counts(events, closed_); }
  static void add_counts(std::span<const std::uint64_t> events, std::vector<std::uint64_t>& counts);

 private:
  void distinguish(Operation& operation, std::uint32_t client);
  Task<> fill(Program& program);
  Bytes capacity() const;
  Task<Answer> call(Program& program, Operation operation);
  Task<Answer> look_up(Program& program, std::string path);
  bool holds_what_it_finds(const Program& program) const;
  Task<bool> do_step_on_what_it_finds(Program& program, Step step);
  Task<> check_free_inodes(Program& program, std::uint64_t named);
  std::string how_it_differs() const;
  std::string how_it_differs_from_answered() const;
  std::string how_it_differs_between(const ModelState& before, const ModelState& after) const;

  const FsSystem& system_;
  FsConfig config_;
  const FsCrashPlan plan_;
  std::vector<std::size_t> epochs_;
  std::vector<std::uint64_t> closed_;  // event counts of those that are no longer open
  std::uint64_t number_ = 0;           // operations so far
  std::uint64_t without_space_ = 0;    // operations that failed for lack of space
  std::uint64_t of_inspector_ = 0;
  bool is_set_up_ = false;
  std::uint32_t ready_ = 0;  // sessions that have come to wait_for_others()
  std::vector<std::uint64_t> kept_closed_;
};

}  // namespace perdura::fs
