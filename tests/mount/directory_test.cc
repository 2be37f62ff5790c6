// Directories that are read while the reader itself changes them.
#include <dirent.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>

#include "tests/mount/two_mounts.h"

namespace perdura::test {
namespace {

namespace files = std::filesystem;

constexpr int kEntries = 500;  // more than an answer to the kernel has room for

class FsDirectoryTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
  }
};

void make_files(const files::path& in, const std::string& kind) {
  for (int i = 0; i < kEntries; ++i) std::ofstream(in / (kind + std::to_string(i))).close();
}

// How often each name is read, when `act` is called for each. Ends where no reading may come to.
std::map<std::string, int> read_names(DIR* directory,
                                      const std::function<void(const std::string& name)>& act) {
  std::map<std::string, int> seen;
  int count = 0;
  while (const dirent* const entry = readdir(directory)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    ++seen[name];
    if (++count > 10 * kEntries) {
      ADD_FAILURE() << "the reading does not end";
      break;
    }
    act(name);
  }
  return seen;
}

void expect_once(const std::map<std::string, int>& seen, const std::string& kind) {
  for (int i = 0; i < kEntries; ++i) {
    const auto found = seen.find(kind + std::to_string(i));
    EXPECT_EQ(found == seen.end() ? 0 : found->second, 1) << kind << i;
  }
}

TEST_P(FsDirectoryTest, ThatIsReadEndsWhateverTheReaderDoes) {
  const AnyMounts mounts(GetParam());
  int made = 0;
  const std::map<std::string, std::function<void(const files::path&)>> acts{
      {"renames there and back",
       [](const files::path& path) {
         files::rename(path, path.parent_path() / "other");
         files::rename(path.parent_path() / "other", path);
       }},
      {"renames",
       [&](const files::path& path) {
         files::rename(path, path.parent_path() / ("renamed" + std::to_string(made++)));
       }},
      {"creates",
       [&](const files::path& path) {
         std::ofstream(path.parent_path() / ("new" + std::to_string(made++))).close();
       }},
      {"links",
       [&](const files::path& path) {
         files::create_hard_link(path, path.parent_path() / ("link" + std::to_string(made++)));
       }},
      {"makes anew",
       [&](const files::path& path) {
         files::remove(path);
         std::ofstream(path).close();
       }},
  };
  for (const auto& [name, act] : acts) {
    SCOPED_TRACE(name);
    const files::path folder = mounts.a() / name;
    files::create_directory(folder);
    make_files(folder, "changed-");
    DIR* const directory = opendir(folder.c_str());
    // Those that stay, half of them made after it was opened and read from its start again.
    make_files(folder, "stays-");
    rewinddir(directory);
    const auto seen = read_names(directory, [&](const std::string& entry) {
      if (!entry.starts_with("stays-")) act(folder / entry);
    });
    expect_once(seen, "stays-");
    for (const auto& [entry, times] : seen) EXPECT_EQ(times, 1) << entry;
    // What came meanwhile is there for who reads from the start.
    rewinddir(directory);
    std::size_t now = 0;
    read_names(directory, [&](const std::string&) { ++now; });
    EXPECT_EQ(static_cast<std::ptrdiff_t>(now),
              std::distance(files::directory_iterator(folder), files::directory_iterator()));
    closedir(directory);
  }
}

TEST_P(FsDirectoryTest, GoesOnWhereItWasTold) {
  const AnyMounts mounts(GetParam());
  make_files(mounts.a(), "stays-");
  DIR* const directory = opendir(mounts.a().c_str());
  std::vector<std::pair<long, std::string>> places;
  for (;;) {
    const long place = telldir(directory);
    const dirent* const entry = readdir(directory);
    if (entry == nullptr) break;
    places.emplace_back(place, entry->d_name);
    if (places.size() % 50 == 0) {
      std::ofstream(mounts.b() / ("new" + std::to_string(places.size()))).close();
    }
  }
  EXPECT_EQ(places.size(), kEntries + 2U);
  for (auto at = places.rbegin(); at != places.rend(); ++at) {
    seekdir(directory, at->first);
    const dirent* const entry = readdir(directory);
    ASSERT_NE(entry, nullptr) << at->second;
    EXPECT_EQ(entry->d_name, at->second);
  }
  closedir(directory);
}

INSTANTIATE_TEST_SUITE_P(Systems, FsDirectoryTest, testing::ValuesIn(ways_to_mount()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace perdura::test
