// Progress and interruption for long commands: shows progress with an estimate on stderr, and lets
// ^C or SIGTERM end the command soon and cleanly.
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
  // `parts` is the number of parts to come. Installs the signal handlers (interrupt.h) and the
  // crash message (crash_message.h). Only the root shows progress.
  LongWork(std::size_t parts, Ranks& ranks);
  ~LongWork() override { LongWork::close(); }
  LongWork(const LongWork&) = delete;
  LongWork& operator=(const LongWork&) = delete;

  // All begin(), within(), end() and skip() throw Interrupted if a signal has arrived.
  void begin(const std::string& label) override;
  void within(const std::string& label,
              double share) override;  // `share` of the current part, 0 to 1
  void end(const std::string& label, const std::string& outcome);
  // For parts whose times differ widely. expect() says how many of each kind are left, before the
  // first of them begins; end() then gets the kind and what the part has cost (time_left.h).
  void expect(const std::map<std::string, std::size_t>& kinds);
  void end(const std::string& label, const std::string& outcome, const std::string& kind,
           TimeLeft::Seconds cost);
  // Ends the part without printing an outcome, for a command that prints it itself.
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
