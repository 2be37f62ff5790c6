// Interrupts the threads of this process at any instruction, as a scheduler may.
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <string>
#include <thread>

namespace perdura::test {

// While this lives, a thread of its own interrupts each other thread but the one that made it,
// again and again, for long enough that others get on meanwhile. The handler of the signal stays,
// since one may still be on its way at the end.
class Interruptions {
 public:
  Interruptions() : maker_(gettid()) {
    struct sigaction action {};
    action.sa_handler = [](int) { pause(); };
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, nullptr);
    thread_ = std::thread([this] { interrupt(); });
  }
  ~Interruptions() {
    ended_ = true;
    thread_.join();
  }
  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;

 private:
  static void pause() {
    constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 20'000};
    const int before = errno;  // of who is interrupted
    nanosleep(&kPause, nullptr);
    errno = before;
  }

  void interrupt() {
    const pid_t self = gettid();
    while (!ended_) {
      std::error_code gone;
      for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", gone)) {
        const pid_t other = std::stoi(task.path().filename());
        if (other == self || other == maker_) continue;
        syscall(SYS_tgkill, getpid(), other, SIGUSR1);  // fails if it has ended
        pause();
      }
    }
  }

  pid_t maker_;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace perdura::test
