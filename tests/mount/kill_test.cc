// The process that serves a mount is killed at random moments, while programs write: what returned
// calls have done is there afterwards, of those that had not returned nothing or all is, and
// nothing is damaged.
//
//   PERDURA_FS_KILLS=500 build/.../perdura_mount_test --gtest_filter='*Kill*'
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <random>
#include <thread>

#include "mount/source.h"
#include "systems/registry/registry.h"
#include "tests/mount/mounted.h"
#include "tests/mount/writers_record.h"
#include "tests/support/seed.h"
#include "tests/support/wait_until.h"

extern char** environ;

namespace perdura::test {
namespace {

using fs::test::WritersRecord;

constexpr int kKills = 20;
constexpr std::uint64_t kMostCalls = 1000;  // of all writers before a kill

class FsKillTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
    if (!is_persistent(GetParam())) GTEST_SKIP() << "a model is forgotten";
  }

  // perdura_fs_writer.
  void start(std::vector<std::string> words) {
    words.insert(words.begin(), PERDURA_FS_WRITER);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ASSERT_EQ(posix_spawn(&writer_, PERDURA_FS_WRITER, nullptr, nullptr, arguments.data(), environ),
              0);
  }
  bool has_ended() const {
    siginfo_t about{};
    return waitid(P_PID, static_cast<id_t>(writer_), &about, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           about.si_pid != 0;
  }
  int end() const {
    int status = 0;
    while (waitpid(writer_, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
  }

 private:
  pid_t writer_ = 0;
};

TEST_P(FsKillTest, LosesNothingThatHasReturned) {
  const fs::FsSystem& system = systems::find_fs_system(GetParam());
  ASSERT_TRUE(system.promises.durable_writes && system.promises.atomic_writes);
  const char* const given = std::getenv("PERDURA_FS_KILLS");
  const int kills = given == nullptr ? kKills : std::atoi(given);
  const unsigned seed = random_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const TemporaryDirectory folder("/dev/shm", "writers");
  const std::string path = folder.path() / "record";
  std::ofstream(path).close();
  std::filesystem::resize_file(path, sizeof(WritersRecord));
  const auto record = fs::test::map_record(path);
  Mounted mounted(GetParam());
  const mount::MountSource place(mounted.place());
  const auto damage = [&] {
    std::string text;
    place.run([&](Thread& thread) -> Task<> {
      for (const fs::Damage& each : co_await system.inspect(thread, place.name(), false)) {
        text += each.where + ": " + each.what + "; ";
      }
    });
    return text;
  };
  const std::vector<std::string> words{mounted.path(), path, std::to_string(seed)};
  for (int round = 1; round <= kills; ++round) {
    SCOPED_TRACE("kill " + std::to_string(round));
    record->phase = WritersRecord::Phase::recovering;
    start(words);
    const std::uint64_t until = random() % kMostCalls;
    ASSERT_TRUE(wait_until([&] {
      return (record->phase == WritersRecord::Phase::working && record->calls >= until) ||
             has_ended();
    }));
    // Also between two calls.
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
    mounted.kill();
    ASSERT_EQ(end(), 0);
    ASSERT_EQ(damage(), "");
    mounted.mount();
  }
  std::vector<std::string> last = words;
  last.emplace_back("--last");
  start(last);
  EXPECT_EQ(end(), 0);
  EXPECT_EQ(mounted.unmount(), 0);
  EXPECT_EQ(damage(), "");
}

INSTANTIATE_TEST_SUITE_P(Systems, FsKillTest, testing::ValuesIn(mounted_systems()),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace perdura::test
