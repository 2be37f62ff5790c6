#include "harness/text/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <iterator>

#include "platform/base/error.h"
#include "tests/harness/temporary_folder.h"

namespace perdura::harness {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public testing::Test {
 protected:
  std::string text() const {
    std::ifstream input(file_);
    return {std::istreambuf_iterator<char>(input), std::istreambuf_iterator<char>()};
  }
  std::size_t files() const {
    const fs::directory_iterator all(folder_.path());
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

  const test::TemporaryFolder folder_;
  const fs::path file_ = folder_.path() / "file";
};

TEST_F(AtomicFileTest, TakesThePlaceOfTheOldOne) {
  write_atomically(file_, "old");
  write_atomically(file_, "new");
  EXPECT_EQ(text(), "new");
  EXPECT_EQ(files(), 1U);
}

TEST_F(AtomicFileTest, WithoutRoomTheOldOneStays) {
  write_atomically(file_, "old");
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit tight{100, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  std::string refused;
  try {
    write_atomically(file_, std::string(1000, 'x'));
  } catch (const PlatformError& error) {
    refused = error.what();
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(refused, file_.string() + ": cannot be written: File too large");
  EXPECT_EQ(text(), "old");
  EXPECT_EQ(files(), 1U) << "nothing half-written is left";
}

TEST_F(AtomicFileTest, APipeIsWrittenToAndStays) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  const int reader = open(file_.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  write_atomically(file_, "text");
  std::array<char, 8> read_back{};
  EXPECT_EQ(read(reader, read_back.data(), read_back.size()), 4);
  close(reader);
  EXPECT_TRUE(fs::is_fifo(file_));
  EXPECT_EQ(files(), 1U);
}

}  // namespace
}  // namespace perdura::harness
