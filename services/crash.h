// What a service brings so that its systems are explored under power failures (bench/crash): a
// small history, and a judge of what is found after it. The exploration does the rest: the
// failures, the images that they may leave, the restart, and which runs can be left out.
//
// In a run, nodes 0, 1, ... hold what must survive (CrashScenario::servers()), the clients' nodes
// follow, and the last node is that of the inspector, who comes when the power is back.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platform/base/parameter.h"
#include "platform/platform.h"
#include "platform/pmem/model/persistence.h"

namespace perdura::services {

// Of which system a history is wanted.
struct CrashSetup {
  pmem::PersistenceModel model;
  GivenParameters parameters{};  // the system's own, besides those that make its store small
  // Changes persist by the method that the chooser finds for the model, not as in the paper.
  bool correct = false;
  std::uint64_t seed = 1;  // of what the clients do
};

// Who does what in a history. A service has several where one does not show everything.
struct CrashSchedule {
  std::string_view name;  // lower case with dashes
  std::string_view what;  // in a few words
};

// Which guarantees a run kept (services/guarantee.h): why not, in lines of which the last names
// what is wrong; empty if it was kept. What each means for a service says its page.
struct CrashVerdict {
  std::string durable;       // nothing that any completed operation has told is lost
  std::string acknowledged;  // the same of changes alone
  std::string observed;      // the same of what was read alone
  std::string ordered;       // what is lost is what was done last
  std::string atomic;        // a state is found that there could have been
};

// One run. Everything that it holds is the observers' memory, not that of a machine, so it
// survives.
class CrashScenario {
 public:
  CrashScenario() = default;
  CrashScenario(const CrashScenario&) = delete;
  CrashScenario& operator=(const CrashScenario&) = delete;
  virtual ~CrashScenario() = default;

  virtual NodeId servers() const { return 1; }
  virtual std::uint32_t clients() const = 0;

  // Opens what the thread's node holds, recovering it if it is there, and serves it; does not end
  // by itself. Called again on the same node when its power is back. Throws if it cannot be opened.
  virtual Task<> serve(Thread& thread) = 0;
  // What client `number` does; ends when it is done or its server is gone. Throws PlatformError if
  // it cannot connect.
  virtual Task<> use(Thread& thread, std::uint32_t number) = 0;
  // Reads what recovery has left, when clients_at_work() is 0, and sees that it can be used.
  virtual Task<> inspect(Thread& thread) = 0;

  // `failed_at`: when the power failed, if it did. Without a failure all is in `durable`.
  virtual CrashVerdict judge(std::optional<Time> failed_at) const = 0;
  // How often something happened that the history is there for ("cleanings"), so that it can be
  // seen that it does.
  virtual std::map<std::string, std::uint64_t, std::less<>> events() const { return {}; }

  // Why the system could not be used; the first reason stays. Judged as the loss of everything.
  void note_problem(const std::string& problem) {
    if (problem_.empty()) problem_ = problem;
  }
  const std::string& problem() const { return problem_; }

  // For inspect(): clients that have not noticed the failure yet.
  std::uint32_t clients_at_work() const { return clients_at_work_; }
  // Counts a client for as long as it lives, however it ends.
  class AtWork {
   public:
    explicit AtWork(CrashScenario& scenario) : count_(++scenario.clients_at_work_) {}
    ~AtWork() { --count_; }
    AtWork(const AtWork&) = delete;
    AtWork& operator=(const AtWork&) = delete;

   private:
    std::uint32_t& count_;
  };

 private:
  std::string problem_;
  std::uint32_t clients_at_work_ = 0;
};

using CrashHistory = std::function<std::unique_ptr<CrashScenario>()>;

}  // namespace perdura::services
