// What a command that takes long owes its user: how far it is, with an estimate, on stderr; and
// that ^C or SIGTERM ends it soon and cleanly.
//
//   LongWork work(configurations.size(), context.ranks);
//   for (...) {
//     work.begin(name);
//     ... work.within(name, share) ...     // from loops within, as often as is convenient
//     work.end(name, "right");
//   }
//
// Threads may share one.
#pragma once

#include <mutex>
#include <string>

#include "harness/run/interrupt.h"
#include "harness/run/progress.h"
#include "harness/run/ranks.h"

namespace perdura::harness {

class LongWork {
 public:
  // Of so many parts. From now on signals are watched for; shows nothing but at the root.
  LongWork(std::size_t parts, Ranks& ranks);
  ~LongWork() { close(); }
  LongWork(const LongWork&) = delete;
  LongWork& operator=(const LongWork&) = delete;

  // Each throws Interrupted if a signal has come.
  void begin(const std::string& label);
  void within(const std::string& label, double share);  // of the part that has begun, 0 to 1
  void end(const std::string& label, const std::string& outcome);
  // The part has ended, and the command prints what came of it itself.
  void skip();
  // The cursor is at the beginning of an empty line.
  void close();

  static void stop_if_interrupted() {
    if (interrupted()) throw Interrupted{};
  }

 private:
  std::mutex mutex_;
  Progress progress_;
};

}  // namespace perdura::harness
