#include "harness/run/progress.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace perdura::harness {
namespace {

std::string duration(std::chrono::seconds time) {
  const auto seconds = time.count();
  if (seconds >= 3600) {
    return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
  }
  return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
}

std::string summary(const Measurement& measurement) {
  if (measurement.verdict != Verdict::valid) {
    return fmt::format("{}: {}", to_string(measurement.verdict), measurement.reason);
  }
  measure::Histogram all;
  for (const auto& [kind, measured] : measurement.kinds) all.merge(measured.latency);
  // A driver that only counts records no times.
  if (all.count() == 0 && measurement.elapsed == Picoseconds{}) {
    return fmt::format("{} operations counted", measurement.operations());
  }
  const std::string tail =
      measurement.has_long_tail()
          ? fmt::format(", {:.0f} % of the operations in its tail", measurement.tail_percent())
          : "";
  const std::string checked =
      measurement.operations_checked == 0
          ? ""
          : fmt::format(", {} operations linearizable", measurement.operations_checked);
  const std::string mark = measurement.noise ? measurement.noise->mark() : "quiet";
  return fmt::format("mean {:.2f} us, {:.1f} kop/s{}{}{}", all.mean() / 1000.0,
                     measurement.throughput().value_or(0) / 1000.0, tail, checked,
                     mark == "quiet" ? "" : ", the host was " + mark);
}

// True if standard error can be written without blocking. A pipe that nobody reads, such as that of
// an mpirun that is ending its ranks, counts as writable as long as there is room for 4 KiB.
bool somebody_reads() {
  pollfd descriptor{STDERR_FILENO, POLLOUT, 0};
  return poll(&descriptor, 1, 0) == 1;
}

}  // namespace

Progress::Progress(std::size_t points, std::size_t done, bool visible)
    : points_(points),
      done_before_(done),
      done_(done),
      visible_(visible),
      terminal_(isatty(STDERR_FILENO) == 1) {}

void Progress::expect(const std::map<std::string, std::size_t>& kinds) {
  by_kind_.emplace(kinds);
  started_ = std::chrono::steady_clock::now();
}

void Progress::ended(const std::string& kind, TimeLeft::Seconds cost) {
  by_kind_->ended(kind, cost);
}

std::string Progress::time_left(double share) const {
  const auto spent = std::chrono::steady_clock::now() - started_;
  if (by_kind_) {
    const auto left = by_kind_->left(spent).value_or(TimeLeft::Seconds(0));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    return seconds.count() == 0 ? "" : fmt::format(" ({} left)", duration(seconds));
  }
  const double done = static_cast<double>(done_ - done_before_) + share;
  const double left = static_cast<double>(points_ - done_) - share;
  if (done <= 0 || left <= 0) return "";
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(spent * (left / done));
  return seconds.count() == 0 ? "" : fmt::format(" ({} left)", duration(seconds));
}

void Progress::within(const std::string& label, double share) {
  const auto now = std::chrono::steady_clock::now();
  const auto since = now - std::max(shown_, started_);
  if (!visible_ ||
      since < (terminal_ ? std::chrono::milliseconds(200) : std::chrono::seconds(10))) {
    return;
  }
  shown_ = now;
  show(fmt::format("[{}/{}]{} {} {:.0f} % ...", done_ + 1, points_, time_left(share), label,
                   100 * share));
  if (!terminal_) close();
}

void Progress::skip() {
  ++done_;
  if (!terminal_ || !open_line_ || !visible_) return;
  if (somebody_reads()) fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  open_line_ = false;
}

void Progress::begin(const std::string& label) {
  if (visible_ && terminal_) {
    show(fmt::format("[{}/{}]{} {} ...", done_ + 1, points_, time_left(), label));
  }
}

void Progress::end(const std::string& label, const Measurement& measurement) {
  end(label, visible_ ? summary(measurement) : "", measurement.verdict != Verdict::valid);
}

void Progress::end(const std::string& label, const std::string& outcome, bool keep) {
  ++done_;
  if (!visible_) return;
  show(fmt::format("[{}/{}]{} {}: {}", done_, points_, time_left(), label, outcome));
  if (!terminal_ || keep) close();
}

void Progress::show(const std::string& text) {
  if (!somebody_reads()) return;
  if (terminal_) {
    fmt::print(stderr, "\r\x1b[K{}", text);
  } else {
    fmt::print(stderr, "{}", text);
  }
  std::fflush(stderr);
  open_line_ = true;
}

void Progress::close() {
  if (!open_line_) return;
  std::fputc('\n', stderr);
  open_line_ = false;
}

}  // namespace perdura::harness
