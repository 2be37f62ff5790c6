// Progress and interruption for commands that take long: shows progress with an estimate on stderr,
// and lets ^C or SIGTERM end the command soon and cleanly.
//
//   LongWork work(configurations.size(), context.ranks);
//   for (...) {
//     work.begin(name);
//     ... work.within(name, share) ...     // from loops within, as often as is convenient
//     work.end(name, "right");
//   }
//
// Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "harness/program/work_watch.h"
#include "harness/run/interrupt.h"
#include "harness/run/progress.h"
#include "harness/run/ranks.h"

namespace perdura::harness {

class LongWork final : public WorkWatch {
 public:
  // Of so many parts. From now on signals are watched for; shows nothing but at the root.
  LongWork(std::size_t parts, Ranks& ranks);
  ~LongWork() override { LongWork::close(); }
  LongWork(const LongWork&) = delete;
  LongWork& operator=(const LongWork&) = delete;

  // Each throws Interrupted if a signal has come.
  void begin(const std::string& label) override;
  void within(const std::string& label,
              double share) override;  // of the part that has begun, 0 to 1
  void end(const std::string& label, const std::string& outcome);
  // For parts that cost very different times: how many are left of each kind, before the first of
  // them begins; then end() is told the kind and what the part has cost (time_left.h).
  void expect(const std::map<std::string, std::size_t>& kinds);
  void end(const std::string& label, const std::string& outcome, const std::string& kind,
           TimeLeft::Seconds cost);
  // Ends the part without printing an outcome: the command prints it itself.
  void skip() override;
  // Leaves the cursor at the beginning of an empty line.
  void close() override;

  static void stop_if_interrupted() {
    if (interrupted()) throw Interrupted{};
  }

 private:
  std::mutex mutex_;
  Progress progress_;
};

}  // namespace perdura::harness
