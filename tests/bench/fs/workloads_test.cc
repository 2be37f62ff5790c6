// What the workloads consist of: their operations in order, and the sizes and trees of their files.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "bench/fs/file_set.h"
#include "bench/fs/file_workload.h"
#include "bench/fs/fs_parameters.h"
#include "bench/fs/gamma.h"
#include "tests/bench/fs/points.h"
#include "tests/support/seed.h"

namespace perdura::bench {
namespace {

using enum FileAction;
using Actions = std::vector<FileAction>;

// A lane's operations as if each succeeded.
std::vector<FileOperation> take(FileLane& lane, std::size_t count) {
  std::vector<FileOperation> operations;
  while (operations.size() < count) {
    const auto next = lane.next();
    if (!next) break;
    operations.push_back(*next);
    lane.performed(*next);
  }
  return operations;
}

Actions actions_of(const std::vector<FileOperation>& operations) {
  Actions actions;
  for (const FileOperation& operation : operations) actions.push_back(operation.action);
  return actions;
}

std::unique_ptr<FileWorkload> workload_of(std::vector<std::string> changes) {
  return create_file_workload(plan(std::move(changes)).front());
}

Actions twice(const Actions& once) {
  Actions all = once;
  all.insert(all.end(), once.begin(), once.end());
  return all;
}

TEST(Filebench, VarmailHasThirteenOperations) {
  const Actions expected{unlink, create, append, fsync, close,      open, read_whole,
                         append, fsync,  close,  open,  read_whole, close};
  ASSERT_EQ(expected.size(), 13U);
  const auto workload = workload_of(small("varmail"));
  EXPECT_EQ(actions_of(take(*workload->lane(0), 26)), twice(expected));
}

TEST(Filebench, FileserverHasElevenOperations) {
  const Actions expected{create, write_whole, close, open,   append, close,
                         open,   read_whole,  close, unlink, stat};
  ASSERT_EQ(expected.size(), 11U);
  const auto workload = workload_of(small("fileserver"));
  EXPECT_EQ(actions_of(take(*workload->lane(1), 22)), twice(expected));
}

TEST(Filebench, WebserverReadsTenFilesAndAppendsToOneLog) {
  Actions expected;
  for (int i = 0; i < 10; ++i) expected.insert(expected.end(), {open, read_whole, close});
  expected.push_back(append);
  ASSERT_EQ(expected.size(), 31U);
  const auto workload = workload_of(small("webserver"));
  const auto operations = take(*workload->lane(0), 62);
  EXPECT_EQ(actions_of(operations), twice(expected));
  EXPECT_EQ(operations.back().file, OpenFile::kept);
  EXPECT_EQ(workload->kept_files(0).size(), 1U);
  EXPECT_EQ(workload->kept_files(0), workload->kept_files(1)) << "the log is one for all";
}

// Appends are uniform from 0 to the size less one.
TEST(Filebench, AppendsAreShorterThanTheirSize) {
  auto changes = small("varmail");
  changes.emplace_back("workload.append_size=4");
  const auto workload = workload_of(changes);
  const auto lane = workload->lane(0);
  std::set<Bytes> lengths;
  for (const FileOperation& operation : take(*lane, 1300)) {
    if (operation.action == append) lengths.insert(operation.length);
  }
  EXPECT_EQ(lengths, (std::set<Bytes>{0, 1, 2, 3}));
}

// Files are taken in rotation: whatever a lane opens, it does not open it again before all others.
TEST(Filebench, TakesFilesInRotation) {
  auto changes = small("webserver");
  const auto workload = workload_of(changes);
  const auto lane = workload->lane(0);
  std::vector<std::uint64_t> opened;
  for (const FileOperation& operation : take(*lane, 31 * 12)) {
    if (operation.action == open) opened.push_back(operation.id);
  }
  ASSERT_EQ(opened.size(), 120U);
  for (std::size_t i = 0; i < opened.size(); ++i) EXPECT_EQ(opened[i], i % 60);
}

// The mean and the variance of a gamma distribution of shape k and mean m are m and m²/k. The mean
// of n draws is off by more than five of its standard deviations once in 1.7 million seeds.
TEST(Gamma, HasItsMeanAndVariance) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(seed);
  Random random(seed);
  constexpr int kDraws = 100'000;
  constexpr double kShape = 1.5;
  constexpr double kMean = 16384;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double drawn = draw_gamma(random, kShape, kMean);
    ASSERT_GT(drawn, 0);
    sum += drawn;
    squares += (drawn - kMean) * (drawn - kMean);
  }
  const double variance = kMean * kMean / kShape;
  EXPECT_NEAR(sum / kDraws, kMean, 5 * std::sqrt(variance / kDraws));
  // The fourth central moment is (3 + 6/k) variance².
  EXPECT_NEAR(squares / kDraws, variance, 5 * variance * std::sqrt((2 + 6 / kShape) / kDraws));
}

TEST(FileSet, IsATreeOfTheMeanWidth) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(seed);
  const FileSet set({.name = "set", .files = 20000, .mean_width = 20, .mean_size = 1000}, seed);
  ASSERT_EQ(set.files(), 20000U);
  std::set<std::string> known;
  for (const std::string& directory : set.directories()) {
    const auto slash = directory.rfind('/');
    EXPECT_TRUE(slash == std::string::npos || known.contains(directory.substr(0, slash)));
    EXPECT_TRUE(known.insert(directory).second);
  }
  std::map<std::string, int> files_in;
  for (FileSet::Id id = 0; id < set.files(); ++id) {
    const std::string path = set.path(id);
    const std::string directory = path.substr(0, path.rfind('/'));
    EXPECT_TRUE(known.contains(directory));
    ++files_in[directory];
    EXPECT_TRUE(set.exists(id));
  }
  // Of leaves, whose width is rounded up from gamma: mean about 20.5, deviation 20 / sqrt(1.5).
  const double leaves = static_cast<double>(files_in.size());
  EXPECT_NEAR(20000 / leaves, 20.5, 5 * 16.4 / std::sqrt(leaves) + 0.5);
}

TEST(FileSet, AFileIsUsedByManyOrChangedByOne) {
  FileSet set({.name = "set", .files = 2, .mean_width = 20, .mean_size = 10}, 1);
  EXPECT_EQ(set.take_to_use(), 0U);
  EXPECT_EQ(set.take_to_delete(), 1U);
  EXPECT_EQ(set.take_to_use(), 0U) << "the other one is being deleted";
  EXPECT_EQ(set.take_to_create(), std::nullopt);
  set.deleted(1);
  EXPECT_EQ(set.take_to_create(), 1U);
  EXPECT_EQ(set.take_to_create(), std::nullopt);
  set.created(1);
  set.used(1);
  EXPECT_EQ(set.take_to_use(), 1U);
  set.used(1);
  EXPECT_EQ(set.take_to_delete(), FileSet::kInUse) << "no other one in place of one that is open";
  EXPECT_EQ(set.take_to_delete(), 1U) << "it was passed over";
}

// Filebench does so, as strace shows of several threads of openfile, readwholefile, closefile.
TEST(FileSet, ExistingFilesAreTakenInOneSequenceByAllThreads) {
  constexpr std::uint64_t kFiles = 40;
  constexpr int kThreads = 3;
  constexpr int kRounds = 200;
  FileSet set({.name = "set", .files = kFiles, .mean_width = 20, .mean_size = 10}, 1);
  std::vector<std::atomic<int>> taken(kFiles);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < kRounds * kFiles; ++i) {
        const auto id = set.take_to_use();
        ++taken[*id];
        set.used(*id);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint64_t id = 0; id < kFiles; ++id) EXPECT_EQ(taken[id], kThreads * kRounds) << id;
}

// Files that were there at first have other sizes than those that a workload makes, so they must be
// gone before it is measured.
TEST(Filebench, TheWarmUpReplacesTheFirstFiles) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  Random random(seed);
  for (const char* const name : {"varmail", "fileserver"}) {
    SCOPED_TRACE(name);
    auto changes = small(name);
    changes.emplace_back("workload.files=1000");
    const harness::Point point = plan_without_warmup(changes);
    const std::uint64_t warmup = point.settings.number("warmup");
    const auto workload = create_file_workload(point);
    std::set<std::string> first;
    std::vector<std::unique_ptr<FileLane>> lanes;
    for (std::uint32_t lane = 0; lane < lanes_of(point); ++lane) {
      lanes.push_back(workload->lane(lane));
      for (const NewFile& file : workload->files(lane)) first.insert(file.path);
    }
    const std::size_t all = first.size();
    // In random order, since no two threads take the same time for each operation.
    for (std::uint64_t i = 0; i < warmup; ++i) {
      for (const FileOperation& operation : take(*lanes[random.uniform_below(lanes.size())], 1)) {
        if (operation.action == unlink) first.erase(std::string(operation.path));
      }
    }
    // Some 5 % of fileserver's and 2 % of varmail's, and never more than 7.1 % with 40 seeds.
    EXPECT_LT(first.size(), all / 10);
  }
}

TEST(Filebench, TheWarmUpIsWhatThePointSays) {
  EXPECT_EQ(plan_without_warmup(small("varmail")).settings.number("warmup"), 60U * 40);
  EXPECT_EQ(plan_without_warmup(small("fileserver")).settings.number("warmup"), 60U * 40);
  EXPECT_EQ(plan_without_warmup(small("webserver")).settings.number("warmup"), 0U);
  EXPECT_EQ(plan_without_warmup(small("stat")).settings.number("warmup"), 0U);
  EXPECT_EQ(plan(small("varmail")).front().settings.number("warmup"), 20U);
}

// What a lane does is a matter of the seed, and lanes differ.
TEST(FileWorkloads, SameSeedSameOperations) {
  const auto fingerprint = [](const FileWorkloadEntry& entry, std::uint32_t lane, int seed) {
    auto changes = small(entry.name);
    changes.push_back(fmt::format("seed={}", seed));
    changes.push_back("workload.threads=2");
    const auto workload = workload_of(changes);
    std::string all;
    for (const NewFile& file : workload->files(lane)) {
      all += fmt::format("{} {}\n", file.path, file.size);
    }
    const auto source = workload->lane(lane);
    for (int i = 0; i < 60; ++i) {
      const auto next = source->next();
      if (!next) break;
      all += fmt::format("{} {} {} {}\n", to_string(next->action), next->path, next->offset,
                         next->length);
      source->performed(*next);
    }
    return all;
  };
  for (const FileWorkloadEntry& entry : file_workloads()) {
    SCOPED_TRACE(entry.name);
    EXPECT_EQ(fingerprint(entry, 0, 1), fingerprint(entry, 0, 1));
    const bool sequential = entry.name == "read" || entry.name == "write";
    const bool names = entry.name == "append" || entry.name == "fsync";
    if (!sequential && !names) {
      EXPECT_NE(fingerprint(entry, 0, 1), fingerprint(entry, 1, 1));
    }
  }
}

TEST(Jobs, ReadAndWriteWhereFioDoes) {
  const auto sequential = workload_of(small("read"));
  const auto reads = take(*sequential->lane(0), 17);
  for (std::size_t i = 0; i < reads.size(); ++i) {
    EXPECT_EQ(reads[i].action, read);
    EXPECT_EQ(reads[i].offset, i % 16 * 4096);
    EXPECT_EQ(reads[i].length, 4096U);
  }
  auto changes = small("randrw");
  changes.emplace_back("workload.read_percent=30");
  changes.emplace_back("workload.fsync_every=2");
  const auto mixed = workload_of(changes);
  std::map<FileAction, int> counts;
  std::set<Bytes> places;
  const auto lane = mixed->lane(0);
  int writes = 0;
  for (const FileOperation& operation : take(*lane, 10'000)) {
    ++counts[operation.action];
    if (operation.action == fsync) {
      EXPECT_EQ(writes, 2);
      writes = 0;
      continue;
    }
    if (operation.action == write) ++writes;
    EXPECT_LE(writes, 2);
    EXPECT_EQ(operation.offset % 4096, 0U);
    places.insert(operation.offset / 4096);
  }
  EXPECT_EQ(places.size(), 16U);
  EXPECT_EQ((counts[write] - writes) / 2, counts[fsync]);
  const double share = 1.0 * counts[read] / (counts[read] + counts[write]);
  EXPECT_NEAR(share, 0.3, 5 * std::sqrt(0.3 * 0.7 / 7000));
}

// mdtest: every directory is made behind the one that it is in, every file is made, looked at, read
// and removed, and in the end nothing is left.
TEST(Trees, AreMadeLookedAtAndRemoved) {
  auto changes = small("mdtest");
  changes.emplace_back("workload.depth=2");
  changes.emplace_back("workload.branching=3");
  const auto workload = workload_of(changes);
  const std::uint64_t round = operations_of_tree(2, 3, 2);
  EXPECT_EQ(round, 2U * 12 + 4 * 13 * 2);
  const auto roots = workload->directories();
  std::set<std::string> there(roots.begin(), roots.end());
  const auto lane = workload->lane(0);
  const std::set<std::string> before = there;
  std::map<FileAction, int> counts;
  for (std::uint64_t i = 0; i < 2 * round; ++i) {
    const auto operation = lane->next();
    ASSERT_TRUE(operation);
    const std::string path(operation->path);
    ++counts[operation->action];
    const bool makes = operation->action == mkdir || operation->action == create;
    if (makes) {
      EXPECT_TRUE(there.contains(path.substr(0, path.rfind('/')))) << path;
      EXPECT_TRUE(there.insert(path).second) << path;
    } else {
      EXPECT_TRUE(there.contains(path)) << path;
    }
    if (operation->action == unlink) there.erase(path);
    if (operation->action == rmdir) {
      there.erase(path);
      const auto next = there.lower_bound(path + "/");
      EXPECT_FALSE(next != there.end() && next->starts_with(path + "/")) << "is not empty";
    }
    EXPECT_TRUE((i + 1) % round != 0 || there == before) << i;
  }
  EXPECT_EQ(counts[mkdir], 24);
  EXPECT_EQ(counts[rmdir], 24);
  for (const FileAction action : {create, stat, open_read_close, unlink}) {
    EXPECT_EQ(counts[action], 52);
  }
}

}  // namespace
}  // namespace perdura::bench
