#include "harness/run/long_work.h"

#include "harness/run/crash_message.h"

namespace perdura::harness {

LongWork::LongWork(std::size_t parts, Ranks& ranks) : progress_(parts, 0, ranks.is_root()) {
  watch_for_interrupts(ranks.is_root(), ranks.are_launched());
  install_crash_message(ranks.describe(ranks.rank()));
  end_if_interrupt_ignored();
}

void LongWork::begin(const std::string& label) {
  stop_if_interrupted();
  const std::lock_guard lock(mutex_);
  progress_.begin(label);
}

void LongWork::within(const std::string& label, double share) {
  stop_if_interrupted();
  const std::lock_guard lock(mutex_);
  progress_.within(label, share);
}

void LongWork::end(const std::string& label, const std::string& outcome) {
  stop_if_interrupted();
  const std::lock_guard lock(mutex_);
  progress_.end(label, outcome, false);
}

void LongWork::expect(const std::map<std::string, std::size_t>& kinds) {
  const std::lock_guard lock(mutex_);
  progress_.expect(kinds);
}

void LongWork::end(const std::string& label, const std::string& outcome, const std::string& kind,
                   TimeLeft::Seconds cost) {
  stop_if_interrupted();
  const std::lock_guard lock(mutex_);
  progress_.ended(kind, cost);
  progress_.end(label, outcome, false);
}

void LongWork::skip() {
  stop_if_interrupted();
  const std::lock_guard lock(mutex_);
  progress_.skip();
}

void LongWork::close() {
  const std::lock_guard lock(mutex_);
  progress_.close();
}

}  // namespace perdura::harness
