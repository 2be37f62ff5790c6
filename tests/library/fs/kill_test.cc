// The process that serves a mount is killed at random moments, while programs write: what they were
// told is there afterwards, and nothing is damaged.
//
//   PERDURA_FS_KILLS=500 build/.../perdura_fs_mount_test --gtest_filter='*Kill*'
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <random>
#include <thread>

#include "library/fs/place.h"
#include "systems/registry/registry.h"
#include "tests/library/fs/mounted.h"
#include "tests/support/processes.h"
#include "tests/support/seed.h"
#include "tests/support/wait_until.h"

namespace perdura::test {
namespace {

constexpr int kKills = 20;
constexpr int kWriters = 2;
constexpr std::uint64_t kMostSteps = 200;  // of all writers before a kill
constexpr std::uint64_t kKept = 500;       // files of a writer, or there would be no room at last

// How far a writer has come, as others see it: a step is begun before its first call and ended
// behind its last.
struct Progress {
  std::atomic<std::uint64_t> begun;
  std::atomic<std::uint64_t> ended;
};

// A step of a writer: a file of its own number is created under another name, filled, synced, and
// renamed; a counter in a shared file is overwritten and synced; every third file is removed, and
// what is kKept steps old.
class Writer {
 public:
  Writer(std::string folder, Progress& progress)
      : folder_(std::move(folder)), progress_(progress) {}

  static std::string text_of(std::uint64_t step) {
    const std::string line = "step " + std::to_string(step) + "\n";
    std::string text;
    while (text.size() < (step * 977) % 20'000) text += line;
    return text + line;
  }
  // Its file, by whoever has come to another step.
  static bool is_removed(std::uint64_t step, std::uint64_t by) {
    return (step % 3 == 0 && step + 1 <= by) || step + kKept <= by;
  }

  // Until a call fails, as all do in a folder whose mount is gone: its path would lead elsewhere.
  void run() {
    if (chdir(folder_.c_str()) != 0) return;
    folder_ = ".";
    for (std::uint64_t step = progress_.ended + 1;; ++step) {
      progress_.begun = step;
      if (!take(step)) return;
      progress_.ended = step;
    }
  }

  // What is missing of what was told; empty if nothing is.
  std::string missing() const {
    const std::uint64_t begun = progress_.begun;
    const std::uint64_t ended = progress_.ended;
    const std::uint64_t oldest = ended > 2 * kKept ? ended - 2 * kKept : 1;
    for (std::uint64_t step = oldest; step <= ended; ++step) {
      const std::string text = read(path(step));
      const bool may_be_removed = is_removed(step, begun);
      if (is_removed(step, ended) ? !text.empty()
                                  : text != text_of(step) && !(may_be_removed && text.empty())) {
        return difference(path(step), text, text_of(step)) + ", of " + std::to_string(ended) +
               " steps";
      }
    }
    const std::string counter = read(folder_ + "/counter");
    const std::uint64_t counted = std::strtoull(counter.c_str(), nullptr, 10);
    if (counted < ended || counted > begun) {
      return folder_ + "/counter is " + counter + " instead of " + std::to_string(ended);
    }
    return "";
  }

 private:
  std::string path(std::uint64_t step) const { return folder_ + "/" + std::to_string(step); }

  static std::string difference(const std::string& path, const std::string& is,
                                const std::string& shall) {
    if (is.size() != shall.size()) {
      return path + " has " + std::to_string(is.size()) + " bytes instead of " +
             std::to_string(shall.size());
    }
    const auto at = std::mismatch(is.begin(), is.end(), shall.begin()).first - is.begin();
    return path + " has other bytes from " + std::to_string(at) +
           " on: " + testing::PrintToString(is.substr(static_cast<std::size_t>(at), 20));
  }

  static std::string read(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY);
    if (file < 0) return "";
    std::string text(1 << 16, '\0');
    text.resize(
        static_cast<std::size_t>(std::max<ssize_t>(::read(file, text.data(), text.size()), 0)));
    close(file);
    return text;
  }

  static bool write(int file, const std::string& text, off_t at) {
    return pwrite(file, text.data(), text.size(), at) == static_cast<ssize_t>(text.size()) &&
           fsync(file) == 0;
  }

  bool take(std::uint64_t step) {
    // What a step that was interrupted has left is in the way.
    const std::string other = folder_ + "/new";
    unlink(other.c_str());
    const int file = open(other.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0644);
    if (file < 0) return false;
    const bool written = write(file, text_of(step), 0);
    close(file);
    if (!written || rename(other.c_str(), path(step).c_str()) != 0) return false;
    std::array<char, 24> number{};
    std::snprintf(number.data(), number.size(), "%020lu", static_cast<unsigned long>(step));
    const int counter = open((folder_ + "/counter").c_str(), O_CREAT | O_WRONLY, 0644);
    if (counter < 0) return false;
    const bool counted = write(counter, number.data(), 0);
    close(counter);
    if (!counted) return false;
    return remove(step - 1) && (step <= kKept || remove(step - kKept));
  }

  // What is to be removed at this step; an interrupted one may have done it.
  bool remove(std::uint64_t step) const {
    const bool due = step > 0 && is_removed(step, progress_.begun);
    return !due || unlink(path(step).c_str()) == 0 || errno == ENOENT;
  }

  std::string folder_;
  Progress& progress_;
};

class FsKillTest : public testing::TestWithParam<std::string> {};

TEST_P(FsKillTest, LosesNothingThatWasSynced) {
  if (const std::string why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
  if (!is_persistent(GetParam())) GTEST_SKIP() << "a model is forgotten";
  const char* const given = std::getenv("PERDURA_FS_KILLS");
  const int kills = given == nullptr ? kKills : std::atoi(given);
  const unsigned seed = random_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const SharedMemory memory(kWriters * sizeof(Progress));
  auto* const progress = new (memory.bytes().data()) Progress[kWriters]();
  Mounted mounted(GetParam());
  const auto folder = [&](int writer) { return mounted.path() / std::to_string(writer); };
  const auto steps = [&] {
    std::uint64_t sum = 0;
    for (int writer = 0; writer < kWriters; ++writer) sum += progress[writer].ended;
    return sum;
  };
  for (int writer = 0; writer < kWriters; ++writer)
    std::filesystem::create_directory(folder(writer));
  for (int round = 1; round <= kills; ++round) {
    std::vector<pid_t> writers;
    for (int writer = 0; writer < kWriters; ++writer) {
      writers.push_back(fork());
      if (writers.back() != 0) continue;
      Writer(folder(writer), progress[writer]).run();
      _exit(0);
    }
    const std::uint64_t until = steps() + random() % kMostSteps;
    ASSERT_TRUE(wait_until([&] { return steps() >= until; }));
    // Also between two steps that are told.
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
    mounted.kill();
    for (const pid_t writer : writers) waitpid(writer, nullptr, 0);
    mounted.mount();
    for (int writer = 0; writer < kWriters; ++writer) {
      ASSERT_EQ(Writer(folder(writer), progress[writer]).missing(), "") << "kill " << round;
    }
  }
  EXPECT_EQ(mounted.unmount(), 0);
  const fs::Place at(mounted.place());
  std::string damage;
  at.run([&](Thread& thread) -> Task<> {
    const auto all = co_await systems::find_fs_system(GetParam()).inspect(thread, at.name(), false);
    for (const fs::Damage& each : all) damage += each.where + ": " + each.what + "; ";
  });
  EXPECT_EQ(damage, "");
}

INSTANTIATE_TEST_SUITE_P(Systems, FsKillTest, testing::ValuesIn(mounted_systems()),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace perdura::test
