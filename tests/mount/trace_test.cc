// A mount that records a trace: it has each access of the programs, once, in order, and the mount
// works as without.
#include "services/fs/trace/trace.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <thread>

#include "mount/mount.h"
#include "platform/base/error.h"
#include "platform/base/path_kind.h"
#include "services/fs/trace/trace_reader.h"
#include "services/fs/trace/trace_text.h"
#include "systems/registry/registry.h"
#include "tests/mount/mounted.h"
#include "tests/mount/two_mounts.h"
#include "tests/support/seed.h"

namespace perdura::test {
namespace {

namespace files = std::filesystem;
using fs::TraceKind;
using fs::TraceRecord;

// A mount of any system, with a trace.
class TracedMount {
 public:
  explicit TracedMount(const std::string& system, const std::string& trace = "")
      : folder_("/dev/shm", "traced"),
        trace_(trace.empty() ? (folder_.path() / "trace").string() : trace) {
    const auto alone = mounted_systems();
    if (std::find(alone.begin(), alone.end(), system) != alone.end()) {
      one_ = std::make_unique<Mounted>(system);
      one_->unmount();
      one_->set_trace(trace_);
      one_->mount();
    } else {
      two_ = std::make_unique<TwoMounts>(MountedCluster{.system = system});
      two_->unmount(two_->a());
      two_->mount(two_->a(), {"--trace=" + trace_});
    }
  }
  const files::path& path() const { return two_ ? two_->a() : one_->path(); }
  int unmount() { return two_ ? two_->unmount(two_->a()) : one_->unmount(); }
  void kill() {
    if (two_) {
      two_->kill(two_->a());
    } else {
      one_->kill();
    }
  }
  const std::string& trace() const { return trace_; }
  // The lines of the trace, after unmount().
  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    fs::TraceReader reader(trace_);
    while (const auto record = reader.next()) {
      const bool is_file = record->kind == TraceKind::file;
      all.push_back(trace_line(*record, is_file ? reader.files().back() : fs::TracedFile{}));
    }
    return all;
  }

 private:
  TemporaryDirectory folder_;
  std::string trace_;
  std::unique_ptr<Mounted> one_;
  std::unique_ptr<TwoMounts> two_;
};

class FsTraceTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
  }
};

class OpenedFile {
 public:
  OpenedFile(const files::path& path, int flags) : file_(open(path.c_str(), flags, 0644)) {
    EXPECT_GE(file_, 0) << path << ": " << std::strerror(errno);
  }
  ~OpenedFile() { close(file_); }
  OpenedFile(const OpenedFile&) = delete;
  OpenedFile& operator=(const OpenedFile&) = delete;
  operator int() const { return file_; }

 private:
  int file_;
};

void put_traced(const files::path& path, const std::string& text, int flags = 0) {
  const OpenedFile file(path, O_WRONLY | O_CREAT | flags);
  EXPECT_EQ(write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

TEST_P(FsTraceTest, HasEachAccessWithTheFilesNamesAndSizes) {
  TracedMount mount(GetParam());
  files::create_directory(mount.path() / "d");
  put_traced(mount.path() / "d/a", "hello");
  put_traced(mount.path() / "d/a", "more", O_APPEND);
  EXPECT_EQ(truncate((mount.path() / "d/a").c_str(), 3), 0);
  files::rename(mount.path() / "d", mount.path() / "e");
  {
    const OpenedFile file(mount.path() / "e/a", O_RDWR);
    std::array<char, 10> bytes{};
    EXPECT_EQ(pread(file, bytes.data(), bytes.size(), 1), 2);
    EXPECT_EQ(pread(file, bytes.data(), bytes.size(), 1), 2) << "no cache hides the second";
    EXPECT_EQ(fsync(file), 0);
  }
  put_traced(mount.path() / "e/b", "x");
  files::rename(mount.path() / "e/b", mount.path() / "c");
  put_traced(mount.path() / "c", "y", O_TRUNC);
  ASSERT_EQ(mount.unmount(), 0);
  std::vector<std::string> lines = mount.lines();
  // The kernel tells later of a file that is closed, and not at all if the unmount comes first.
  const auto closes =
      std::erase_if(lines, [](const std::string& line) { return line.starts_with("close "); });
  EXPECT_GE(closes, 1U);
  EXPECT_LE(closes, 5U);
  EXPECT_EQ(lines, (std::vector<std::string>{
                       "file 0 d/a", "open 0", "write 0 0 5", "open 0", "append 0 5 4",
                       "truncate 0 3", "open 0", "read 0 1 2", "read 0 1 2", "sync 0", "file 0 e/b",
                       "open 1", "write 1 0 1", "open 1", "truncate 1 0", "write 1 0 1"}));
}

TEST_P(FsTraceTest, AnInodeThatIsUsedAgainIsAnotherFile) {
  TracedMount mount(GetParam());
  constexpr int kFiles = 20;
  for (int i = 0; i < kFiles; ++i) {
    put_traced(mount.path() / std::to_string(i), "text");
    files::remove(mount.path() / std::to_string(i));
  }
  ASSERT_EQ(mount.unmount(), 0);
  fs::TraceReader reader(mount.trace());
  while (reader.next()) {
  }
  ASSERT_EQ(reader.files().size(), static_cast<std::size_t>(kFiles));
  for (int i = 0; i < kFiles; ++i) {
    EXPECT_EQ(reader.files()[i], (fs::TracedFile{std::to_string(i), 0}));
  }
}

TEST_P(FsTraceTest, RandomAccessesAreThoseThatWereMade) {
  const std::uint32_t seed = random_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  TracedMount mount(GetParam());
  std::vector<TraceRecord> made;
  {
    const OpenedFile file(mount.path() / "f", O_RDWR | O_CREAT);
    made = {{TraceKind::file, 0}, {TraceKind::open, 0}};
    Bytes size = 0;
    std::vector<char> bytes(100'000);
    for (int i = 0; i < 500; ++i) {
      const Bytes offset = below(300'000);
      const Bytes length = 1 + below(bytes.size());
      switch (below(4)) {
        case 0: {
          EXPECT_EQ(pwrite(file, bytes.data(), length, static_cast<off_t>(offset)),
                    static_cast<ssize_t>(length));
          made.push_back({TraceKind::write, 0, offset, length});
          size = std::max(size, offset + length);
          break;
        }
        case 1: {
          EXPECT_EQ(ftruncate(file, static_cast<off_t>(offset)), 0);
          made.push_back({TraceKind::truncate, 0, offset});
          size = offset;
          break;
        }
        default: {
          const Bytes there = offset < size ? std::min(length, size - offset) : 0;
          EXPECT_EQ(pread(file, bytes.data(), length, static_cast<off_t>(offset)),
                    static_cast<ssize_t>(there));
          // The kernel knows the size: it need not ask for what lies beyond.
          if (there > 0) made.push_back({TraceKind::read, 0, offset, there});
        }
      }
    }
  }
  ASSERT_EQ(mount.unmount(), 0);
  std::vector<TraceRecord> traced;
  fs::TraceReader reader(mount.trace());
  while (const auto record = reader.next()) {
    const bool is_nothing = record->kind == TraceKind::read && record->length == 0;
    if (!is_nothing && record->kind != TraceKind::close) traced.push_back(*record);
  }
  ASSERT_EQ(traced.size(), made.size());
  for (std::size_t i = 0; i < made.size(); ++i) ASSERT_EQ(traced[i], made[i]) << i;
}

TEST_P(FsTraceTest, HasTheAccessesOfAllThreads) {
  TracedMount mount(GetParam());
  constexpr int kThreads = 4;
  constexpr int kWrites = 200;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        const OpenedFile file(mount.path() / std::to_string(i), O_WRONLY | O_CREAT);
        for (int k = 0; k < kWrites; ++k) EXPECT_EQ(write(file, "text", 4), 4);
      });
    }
  }
  ASSERT_EQ(mount.unmount(), 0);
  fs::TraceReader reader(mount.trace());
  std::map<std::uint32_t, Bytes> next;
  while (const auto record = reader.next()) {
    if (record->kind != TraceKind::write) continue;
    EXPECT_EQ(record->offset, next[record->file]);
    EXPECT_EQ(record->length, 4U);
    next[record->file] += 4;
  }
  EXPECT_EQ(next.size(), static_cast<std::size_t>(kThreads));
  for (const auto& [file, end] : next) EXPECT_EQ(end, 4U * kWrites);
}

TEST(FsTrace, AMountThatIsRefusedLeavesNone) {
  if (const std::string why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
  Mounted mounted("nova");
  ASSERT_EQ(mounted.unmount(), 0);
  const TemporaryDirectory folder("/dev/shm", "traced");
  const std::string trace = (folder.path() / "trace").string();
  EXPECT_THROW(mount::serve(systems::find_fs_system("nova"), mount::MountSource(mounted.place()),
                            {.directory = mounted.path(), .options = "wrong", .trace = trace}),
               UsageError);
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST_P(FsTraceTest, AKilledMountLeavesWhatIsRefused) {
  TracedMount mount(GetParam());
  put_traced(mount.path() / "a", "text");
  mount.kill();
  EXPECT_THROW(mount.lines(), UsageError);
}

TEST_P(FsTraceTest, AFullDiskDisturbsNobodyAndIsReportedAtTheEnd) {
  TracedMount mount(GetParam(), "/dev/full");
  const std::string name(200, 'n');
  for (int i = 0; i < 1000; ++i) put_traced(mount.path() / (name + std::to_string(i)), "text");
  EXPECT_EQ(read_file(mount.path() / (name + "999")), "text");
  EXPECT_NE(mount.unmount(), 0);
}

INSTANTIATE_TEST_SUITE_P(Of, FsTraceTest, testing::ValuesIn(systems_by_any_mount()),
                         [](const auto& system) { return system.param; });

}  // namespace
}  // namespace perdura::test
