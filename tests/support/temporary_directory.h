// A directory for a test, initially empty and removed afterwards. If a test is killed, the next
// test removes its directory.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <string_view>

#include "tests/support/leftovers.h"

namespace perdura::test {

class TemporaryDirectory {
 public:
  TemporaryDirectory(const std::filesystem::path& where, std::string_view what) {
    static std::atomic<unsigned> next{0};
    remove_leftovers(where);
    path_ = where / ("perdura-" + job_name(std::string(what) + "-" + std::to_string(++next)));
    std::filesystem::create_directories(path_);
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace perdura::test
