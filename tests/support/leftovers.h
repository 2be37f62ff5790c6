// Removes the files that tests with several processes leave below /dev/shm when they are killed, by
// a time limit or by hand. The next test calls this.
#pragma once

#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace perdura::test {

// The folders of tests are "perdura-test.PID-..." and "perdura-pools-test.PID-...".
inline constexpr std::string_view kTestMark = "test.";

inline std::string job_name(const std::string& what) {
  return std::string(kTestMark) + std::to_string(getpid()) + "-" + what;
}

// Removes the folders of test processes that have ended. Processes of a job that has lost its test
// die with it (PR_SET_PDEATHSIG).
inline void remove_leftovers(const std::filesystem::path& root = "/dev/shm") {
  std::error_code ignored;
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(root, ignored)) {
    const std::string name = entry.path().filename().string();
    for (const std::string prefix : {"perdura-", "perdura-pools-"}) {
      const std::string start = prefix + std::string(kTestMark);
      if (!name.starts_with(start)) continue;
      const long process = std::strtol(name.c_str() + start.size(), nullptr, 10);
      if (process > 0 && kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH) {
        found.push_back(entry.path());
      }
    }
  }
  for (const auto& path : found) {
    // What a test has mounted there; of anything else this is an error.
    for (const auto& entry : std::filesystem::directory_iterator(path, ignored)) {
      umount2(entry.path().c_str(), MNT_DETACH);
    }
    std::filesystem::remove_all(path, ignored);
  }
}

}  // namespace perdura::test
