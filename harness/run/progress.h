// Tells on stderr how far a sweep is: a line per point, or on a terminal one line that is
// rewritten, with an estimate of the time left. Output never blocks a sweep: if nobody reads it,
// progress is dropped, and room is kept for messages that must be shown.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "harness/results/measurement.h"
#include "harness/run/time_left.h"

namespace perdura::harness {

class Progress {
 public:
  // Of `points`, `done` were done before. Silent if not `visible`.
  Progress(std::size_t points, std::size_t done, bool visible);

  // From now on the time left comes from the costs of these kinds of points, so many of each, which
  // are told by ended().
  void expect(const std::map<std::string, std::size_t>& kinds);
  void ended(const std::string& kind, TimeLeft::Seconds cost);

  void begin(const std::string& label);
  void end(const std::string& label, const Measurement& measurement);
  // The same of what is no point of an experiment; `keep`: also on a terminal the line stays.
  void end(const std::string& label, const std::string& outcome, bool keep);
  // The share, 0 to 1, of what has begun that is done; may be called as often as is convenient. On
  // a terminal the line follows a few times a second, elsewhere there is a line every ten seconds.
  void within(const std::string& label, double share);
  // The same as end(), for what says itself what came of it: clears the line.
  void skip();
  // Leaves the cursor at the beginning of an empty line.
  void close();

 private:
  std::string time_left(double share = 0) const;
  void show(const std::string& text);

  std::size_t points_;
  std::size_t done_before_;
  std::size_t done_;
  bool visible_;
  bool terminal_;
  bool open_line_ = false;
  std::optional<TimeLeft> by_kind_{};
  std::chrono::steady_clock::time_point shown_{};
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace perdura::harness
