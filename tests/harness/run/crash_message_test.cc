#include "harness/run/crash_message.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <string>
#include <utility>

namespace perdura::harness {
namespace {

const std::pair<int, const char*> kSignals[] = {{SIGABRT, "SIGABRT"},
                                                {SIGSEGV, "SIGSEGV"},
                                                {SIGBUS, "SIGBUS"},
                                                {SIGFPE, "SIGFPE"},
                                                {SIGILL, "SIGILL"}};

#ifdef __SANITIZE_ADDRESS__
constexpr bool kSanitized = true;  // its handlers come next, and exit
#else
constexpr bool kSanitized = false;
#endif

auto died_of(int signal) {
  return [signal](int status) {
    return kSanitized ? status != 0 : WIFSIGNALED(status) && WTERMSIG(status) == signal;
  };
}

// Each process that dies knows of no run that came before it in this one.
class CrashMessage : public testing::Test {
 protected:
  CrashMessage() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// The signal's own effect follows, so that core dumps and exit codes are as ever.
TEST_F(CrashMessage, NameTheRankAndWhatItWasRunningAtEachCrash) {
  for (const auto& [signal, name] : kSignals) {
    const int number = signal;
    EXPECT_EXIT(
        {
          install_crash_message("rank 3 on host b");
          set_crash_context("point 6 (redo)");
          set_crash_context("point 7 (erda)");
          raise(number);
        },
        died_of(number),
        std::string("^perdura: rank 3 on host b died of ") + name +
            " while running point 7 \\(erda\\)\n");
  }
}

TEST_F(CrashMessage, SayNothingOfAPointBeforeTheFirst) {
  EXPECT_EXIT(
      {
        install_crash_message("this process");
        raise(SIGABRT);
      },
      died_of(SIGABRT), "^perdura: this process died of SIGABRT\n");
}

// A process that has several runs one after the other promises them again.
TEST_F(CrashMessage, ComeOnceThoughPromisedTwice) {
  EXPECT_EXIT(
      {
        install_crash_message("rank 1");
        install_crash_message("rank 2");
        raise(SIGABRT);
      },
      died_of(SIGABRT), "^perdura: rank 2 died of SIGABRT\n$");
}

TEST_F(CrashMessage, AreCutOffAtTheirLimit) {
  EXPECT_EXIT(
      {
        install_crash_message(std::string(1000, 'w'));
        set_crash_context(std::string(1000, 'x'));
        raise(SIGSEGV);
      },
      died_of(SIGSEGV), "^perdura: w{400} died of SIGSEGV while running x{400}\n");
}

}  // namespace
}  // namespace perdura::harness
