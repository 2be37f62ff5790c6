// How long a thread that has no work looks for some before it sleeps.
//
// If the work comes from a thread on another core, spinning for some microseconds saves the time of
// falling asleep and being woken. If it comes from a thread that needs this core, that one cannot
// begin before this one sleeps. A thread does not know which it is, but its last spins tell: after
// some in vain it sleeps at once, and spins only now and then to find out whether that has changed.
#pragma once

#include <algorithm>

namespace perdura::host {

class Spinning {
 public:
  // Turns without work after which the thread is to sleep. One such turn takes some 40 ns.
  static constexpr int kLong = 200;
  static constexpr int kShort = 4;
  int turns() const { return to_sleep_at_once_ == 0 ? kLong : kShort; }

  // There is work after so many turns without.
  void found_work(int turns) {
    // In the short time the thread would have found it anyway.
    if (turns > kShort) in_vain_ = 0;
  }
  // The thread is about to sleep after turns().
  void found_none() {
    if (to_sleep_at_once_ > 0) {
      --to_sleep_at_once_;
    } else {
      in_vain_ = std::min(in_vain_ + 1, kMostInVain);
      to_sleep_at_once_ = (1 << in_vain_) - 1;
    }
  }

 private:
  // A thread whose spins are all in vain spins at one of 32 times.
  static constexpr int kMostInVain = 5;
  int in_vain_ = 0;           // spins since the last one that found work
  int to_sleep_at_once_ = 0;  // how often the thread sleeps at once before it spins again
};

}  // namespace perdura::host
