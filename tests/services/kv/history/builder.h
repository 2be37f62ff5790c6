// Histories written by hand, times in microseconds.
#pragma once

#include "services/kv/history/checker.h"

namespace perdura::history::test {

constexpr auto kLastVersion = Promise::Undone::last_version;

inline Time at(double microseconds) {
  return Time(Picoseconds(static_cast<std::int64_t>(microseconds * 1e6)));
}

class Builder {
 public:
  explicit Builder(std::uint64_t key = 7) : key_(key) {}

  Builder& put(std::uint64_t version, double start, double end, Outcome outcome = Outcome::ok) {
    return add(Kind::put, version, start, end, outcome);
  }
  Builder& get(std::uint64_t version, double start, double end, Outcome outcome = Outcome::ok) {
    return add(Kind::get, version, start, end, outcome);
  }
  Builder& find_absent(double start, double end) {
    return add(Kind::get, 0, start, end, Outcome::not_found);
  }
  Builder& erase(double start, double end, Outcome outcome = Outcome::ok) {
    return add(Kind::erase, 0, start, end, outcome);
  }
  // Never answered.
  Builder& lost_put(std::uint64_t version, double start) {
    return add(Kind::put, version, start, 0, Outcome::unknown);
  }
  Builder& lost_erase(double start) { return add(Kind::erase, 0, start, 0, Outcome::unknown); }
  Builder& power_failure(double when) {
    history_.add_power_failure(at(when));
    return *this;
  }

  History& history() { return history_; }
  CheckResult check(Promise::Undone undone = Promise::Undone::nothing) const {
    return history::check(history_, {.undone = undone});
  }

 private:
  Builder& add(Kind kind, std::uint64_t version, double start, double end, Outcome outcome) {
    history_.add({.key = key_,
                  .version = version,
                  .start = at(start),
                  .end = outcome == Outcome::unknown ? Time::max() : at(end),
                  .client = next_client_++,
                  .kind = kind,
                  .outcome = outcome});
    return *this;
  }

  std::uint64_t key_;
  std::uint32_t next_client_ = 0;
  History history_;
};

}  // namespace perdura::history::test
