// A process that is started with less than usual, and all that is left of it when it has ended.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace perdura::test {

struct Ended {
  int code = -1;   // unless a signal ended it
  int signal = 0;  // SIGKILL also of one that did not end by itself
  std::string out{};
  std::string errors{};
  // Processes and mounts that are still there, and what was left in /dev/shm; they are removed.
  std::vector<std::string> left{};

  std::string text() const { return out + errors; }
};

struct Start {
  std::vector<std::string> words;
  std::vector<std::string> environment{};    // "NAME=VALUE", beside that of the test
  std::filesystem::path folder{};            // in which it begins; empty: that of the test
  std::function<void()> in_process = [] {};  // in the new process, before the program
  // A server ends by SIGTERM as soon as this is true of what it has printed.
  std::function<bool(pid_t, const std::string& out)> serves{};
  // Another command serves in the background meanwhile, and is not taken for something left.
  bool beside_others = false;
  // Called after the process has ended, before anything that is left is looked for.
  std::function<void(Ended&)> afterwards = [](Ended&) {};
};

// The test has mounts and a /dev/shm of its own, in which nobody else leaves anything. As root it
// makes them at the first call; else it is false.
bool has_own_host();

// Runs it to its end. One that takes two minutes is killed.
Ended run(const Start& start);

// The process has a handler for SIGTERM.
bool handles_termination(pid_t process);

}  // namespace perdura::test
