// What a sweep says while it runs, when nobody reads it.
#include "harness/run/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>

namespace perdura::harness {
namespace {

// stderr is a pipe as long as it lives.
class StderrToPipe {
 public:
  StderrToPipe() {
    EXPECT_EQ(pipe(ends_.data()), 0);
    EXPECT_EQ(fcntl(ends_[0], F_SETFL, O_NONBLOCK), 0);
    dup2(ends_[1], STDERR_FILENO);
  }
  ~StderrToPipe() {
    dup2(before_, STDERR_FILENO);
    for (const int descriptor : {ends_[0], ends_[1], before_}) close(descriptor);
  }
  StderrToPipe(const StderrToPipe&) = delete;
  StderrToPipe& operator=(const StderrToPipe&) = delete;

  std::string read_all() {
    std::string text;
    std::array<char, 4096> part{};
    for (ssize_t got; (got = read(ends_[0], part.data(), part.size())) > 0;) {
      text.append(part.data(), static_cast<std::size_t>(got));
    }
    return text;
  }

 private:
  int before_ = dup(STDERR_FILENO);
  std::array<int, 2> ends_{};
};

// With a write that blocks it would never end.
TEST(Progress, DoesNotWaitForAReader) {
  StderrToPipe pipe;
  constexpr int kPoints = 10000;
  Progress progress(kPoints, 0, true);
  for (int i = 0; i < kPoints; ++i) progress.end("point", {});
  const std::string said = pipe.read_all();
  EXPECT_TRUE(said.starts_with("[1/10000]")) << said.substr(0, 200);
  EXPECT_EQ(said.find("[10000/10000]"), std::string::npos);

  progress.end("last", {});
  EXPECT_NE(pipe.read_all().find("last: "), std::string::npos) << "there is room again";
}

}  // namespace
}  // namespace perdura::harness
