#include "harness/run/interrupt.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "harness/run/crash_message.h"

namespace perdura::harness {
namespace {

// In a process of its own each time: handlers stay.
[[noreturn]] void be_interrupted_and_wait(bool heed) {
  install_crash_message("this process");
  set_crash_context("point 1 (erda)");
  watch_for_interrupts(true, false);
  end_if_interrupt_ignored(std::chrono::seconds(1));
  raise(SIGTERM);
  if (heed) {
    heed_interrupt();
    _exit(alarm(0) == 0 ? 7 : 8);
  }
  while (true) pause();
}

TEST(Interrupt, ThatNobodyHeedsEndsTheProcess) {
  EXPECT_EXIT(be_interrupted_and_wait(false), testing::ExitedWithCode(1),
              "perdura: this process did not stop when it was told to while running point 1 "
              "\\(erda\\); it is ended now, and what was finished is kept\n$");
}

TEST(Interrupt, ThatIsHeededLeavesTimeToEnd) {
  EXPECT_EXIT(be_interrupted_and_wait(true), testing::ExitedWithCode(7),
              "interrupted: stopping; the same signal again ends it at once");
}

}  // namespace
}  // namespace perdura::harness
