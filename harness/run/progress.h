// Prints on stderr how far a sweep is: a line per point, or on a terminal a single line that is
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
  // `done` of the `points` were finished in an earlier session. Silent if not `visible`.
  Progress(std::size_t points, std::size_t done, bool visible);

  // From now on, the time left is computed from the costs of the points of each kind, which ended()
  // reports; the map has the number of points per kind.
  void expect(const std::map<std::string, std::size_t>& kinds);
  void ended(const std::string& kind, TimeLeft::Seconds cost);

  void begin(const std::string& label);
  void end(const std::string& label, const Measurement& measurement);
  // The same for work other than a point. If `keep`, the line stays on a terminal, too.
  void end(const std::string& label, const std::string& outcome, bool keep);
  // `share`, 0 to 1, is the finished part of what has begun; may be called as often as convenient.
  // A terminal is updated a few times per second; elsewhere a line is printed every ten seconds.
  void within(const std::string& label, double share);
  // Ends without an outcome, for callers that print it themselves: clears the line.
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
