// One run of a small store: a server, two clients that use the same few keys as a schedule says,
// perhaps a power failure of the server, its recovery, and a reader that finds what is left.
#pragma once

#include <array>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bench/crash/crash.h"
#include "harness/history/recorder.h"
#include "platform/sim/failures.h"

namespace perdura::bench {

inline constexpr std::uint64_t kCrashKeys = 4;
inline constexpr std::uint32_t kCrashClients = 2;
inline constexpr std::uint32_t kCrashReader = kCrashClients;  // its number in the history

// As small as the system can be: logs go around and are cleaned within the history.
systems::KvConfig small_store(const systems::KvSystem& system, const CrashOptions& options);

class CrashScenario {
 public:
  CrashScenario(const systems::KvSystem& system, systems::KvConfig store,
                const sim::Profile& profile, const CrashOptions& options, Schedule schedule);
  CrashScenario(const CrashScenario&) = delete;
  CrashScenario& operator=(const CrashScenario&) = delete;

  // To the end, with the failure where `failure` wants it; but to the failure only if the image
  // that it leaves is among `known`, since what follows is then the same as it was.
  void run(sim::Failure& failure, const std::set<std::uint64_t>& known);

  history::History history() const;  // without the failure
  std::optional<Time> failed_at() const { return failed_at_; }
  // A digest of which image was found where; only after a failure.
  std::uint64_t image() const { return image_; }
  bool image_was_known() const { return image_was_known_; }
  // Why the store could not be used, without a failure or again after it; empty if it could.
  const std::string& problem() const { return problem_; }
  std::uint64_t cleanings() const { return cleanings_; }

 private:
  struct Step {
    history::Kind kind;
    std::uint64_t key;
  };
  class Format final : public history::Format {
   public:
    explicit Format(Bytes value_size) : value_size_(value_size) {}
    std::uint64_t key_number(systems::Key key) override;
    std::optional<std::uint64_t> version(systems::Key key, systems::Value value) override;

   private:
    Bytes value_size_;
  };
  class Present;

  void start_server();
  void start_client(std::uint32_t number, bool reader);
  Task<> serve(Thread& thread);
  Task<> use(Thread& thread, std::uint32_t number, bool reader);
  Task<> change(systems::KvSession& session, std::uint32_t number);
  Task<> watch(systems::KvSession& session, std::uint32_t number);
  Task<> read(systems::KvSession& session);
  Task<bool> step(systems::KvSession& session, Step step, std::uint32_t number);
  std::vector<Step> plan(std::uint32_t client) const;

  Schedule schedule_;
  const systems::KvSystem& system_;
  std::uint64_t seed_;
  systems::KvConfig config_;
  std::array<history::OperationLog, kCrashClients + 1> logs_;
  std::array<std::uint64_t, kCrashClients + 1> versions_{};  // put so far
  std::array<std::string, kCrashClients> client_problems_;
  std::uint32_t clients_ = 0;  // at work
  bool writing_ = true;        // the slow writer
  std::optional<Time> failed_at_;
  std::uint64_t image_ = 0;
  bool image_was_known_ = false;
  std::string problem_;
  std::uint64_t cleanings_ = 0;
  sim::SimPlatform platform_;  // last: its threads use the others to their end
};

}  // namespace perdura::bench
