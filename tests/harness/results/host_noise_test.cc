// What is made of the kernel's counts, and when a point is marked.
#include "harness/results/host_noise.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/harness/temporary_folder.h"

namespace perdura::harness {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

class HostNoiseTest : public testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((proc_ / file).parent_path());
    std::ofstream(proc_ / file) << text;
  }
  // The same of every core that there can be: those count that this process may use.
  void write_ticks(const std::string& ticks) const {
    std::string text = "cpu  1 2 3 4 5 6 7 8 9 10\n";
    for (int core = 0; core < 1024; ++core) text += fmt::format("cpu{} {}\n", core, ticks);
    write("stat", text + "intr 5 6 7\nprocs_running 3\n");
  }

  test::TemporaryFolder temporary_;
  const fs::path proc_ = temporary_.path() / "proc";
};

TEST_F(HostNoiseTest, CountsAreOfTheCoresAndThreadsOfThisProcess) {
  write_ticks("1 2 3 40 5 6 7 8 0 0");
  write("self/task/7/schedstat", "1000 200 3\n");
  write("self/task/8/schedstat", "500 50 1\n");
  const HostCounts counts = host_counts(proc_);
  ASSERT_GE(counts.cores, 1U);
  EXPECT_EQ(counts.ticks, counts.cores * 72U);
  EXPECT_EQ(counts.idle, counts.cores * 45U);
  EXPECT_EQ(counts.steal, counts.cores * 8U);
  EXPECT_EQ(counts.ran, nanoseconds(1500));
  EXPECT_EQ(counts.waited, nanoseconds(250));
}

TEST_F(HostNoiseTest, OfAKernelThatSaysNothingNothingIsKnown) {
  const HostCounts counts = host_counts(proc_);
  EXPECT_FALSE(counts.waited);
  HostCounts later = counts;
  later.at += milliseconds(1000);
  EXPECT_EQ(noise_between(counts, later), HostNoise{});
  EXPECT_EQ(noise_before(proc_), HostNoise{});
}

TEST_F(HostNoiseTest, BeforeAPointTheReaderDoesNotCount) {
  write_ticks("0 0 0 0 0 0 0 0 0 0");
  write("loadavg", "6.48 4.51 2.55 257/946 25721\n");
  const HostNoise noise = noise_before(proc_);
  EXPECT_EQ(noise.load_average, 6.48);
  EXPECT_EQ(noise.runnable_before, 0.25);
}

// Two cores, half of their time idle, for a second.
class Interval : public testing::Test {
 protected:
  HostNoise noise() const { return noise_between(begin_, end_); }

  HostCounts begin_{.at = {}, .cores = 2, .ticks = 1000, .idle = 500, .waited = nanoseconds(0)};
  HostCounts end_{.at = begin_.at + milliseconds(1000),
                  .cores = 2,
                  .ticks = 1200,
                  .idle = 600,
                  .ran = milliseconds(900),
                  .waited = nanoseconds(0)};
};

TEST_F(Interval, ThatIsQuietHasNoMark) {
  EXPECT_EQ(noise().waiting, 0);
  EXPECT_EQ(noise().steal_percent, 0);
  EXPECT_EQ(noise().runnable, 0.5) << "the host's one, of which 0.9 are this process'";
  EXPECT_EQ(noise().mark(), "quiet");
}

TEST_F(Interval, OfThreadsThatWaitForCoresIsCrowded) {
  end_.waited = milliseconds(500);
  EXPECT_EQ(noise().waiting, 0.5);
  EXPECT_EQ(noise().runnable, 0.75);
  EXPECT_EQ(noise().mark(), "crowded");
  end_.waited = milliseconds(499);
  EXPECT_EQ(noise().mark(), "quiet");
}

TEST_F(Interval, OfWhichAHypervisorTakesAPartIsDisturbed) {
  end_.steal = 2;
  EXPECT_EQ(noise().steal_percent, 1);
  EXPECT_EQ(noise().mark(), "disturbed");
}

TEST_F(Interval, ThatIsTooShortForTheKernelsClockHasNoSteal) {
  end_.ticks = begin_.ticks + 10;
  end_.idle = begin_.idle;
  end_.steal = 5;
  EXPECT_FALSE(noise().steal_percent);
  EXPECT_EQ(noise().runnable, 0.45);
}

TEST_F(Interval, InWhichThreadsEndedIsNotNegative) {
  begin_.waited = milliseconds(500);
  begin_.ran = milliseconds(5000);
  EXPECT_EQ(noise().waiting, 0);
}

TEST(HostNoiseMark, TakesTheNoisierOfSeveralProcesses) {
  HostNoise noise{.waiting = 3, .steal_percent = 0};
  noise.merge({.load_average = 2, .waiting = 0.1, .slowdown_percent = 10});
  EXPECT_EQ(noise.load_average, 2);
  EXPECT_EQ(noise.waiting, 3);
  EXPECT_EQ(noise.steal_percent, 0);
  EXPECT_EQ(noise.mark(), "crowded and disturbed");
}

TEST(Calibration, ComparesWithTheFastestLoop) {
  Calibration calibration;
  const nanoseconds first = calibration.measure();
  EXPECT_GT(first.count(), 0);
  EXPECT_EQ(calibration.slowdown_percent(first), 0);
  EXPECT_NEAR(calibration.slowdown_percent(first * 2), 100, 1e-9);
}

}  // namespace
}  // namespace perdura::harness
