// Regions on a disk: what a power failure leaves of them, and how long it takes to write and to
// read them.
#include <gtest/gtest.h>

#include "tests/platform/sim/power.h"

namespace perdura::sim::test {
namespace {

constexpr PersistenceModel kMachines[] = {{PersistenceDomain::dmp, false},
                                          {PersistenceDomain::dmp, true},
                                          {PersistenceDomain::mhp, true},
                                          {PersistenceDomain::wsp, true}};

using OnMedia = std::function<void(Region& file, Region& memory)>;

// Word 0 of a file and of persistent memory after a power failure, all that they may be.
std::set<Image> images_after(PersistenceModel model, const OnMedia& steps) {
  std::set<Image> images;
  pmem::Enumerator choices;
  while (choices.next()) {
    SimPlatform platform(testbed(), 2);
    platform.track_durability(model);
    Node& node = *platform.local_node(0);
    const auto file = node.create_region("file", kPoolSize, pmem::Medium::disk);
    const auto memory = node.create_region("memory", kPoolSize, pmem::Medium::pm);
    platform.start_service(0, 0, CompletionMode::polling, [&](Thread&) -> Task<> {
      steps(*file, *memory);
      co_return;
    });
    platform.start(1, 1, CompletionMode::polling,
                   [](Thread&) -> Task<> { co_await sleep_for(Milliseconds(20)); });
    platform.at(Time(Milliseconds(10)), [&] {
      platform.fail_power(0, choices);
      images.insert({node.open_region("file")->load(0), node.open_region("memory")->load(0)});
    });
    platform.run();
  }
  return images;
}

// Also where caches are in the persistence domain: the page cache is not.
TEST(Disk, HasWhatWasWrittenBackAndWaitedFor) {
  for (const PersistenceModel& model : kMachines) {
    const auto stored = [](Region& file, Region&) { file.store(0, 1); };
    EXPECT_EQ(images_after(model, stored), (std::set<Image>{{0, 0}, {1, 0}}));
    const auto begun = [](Region& file, Region&) {
      file.store(0, 1);
      file.flush(0, kWord);
    };
    EXPECT_EQ(images_after(model, begun), (std::set<Image>{{0, 0}, {1, 0}}));
    const auto done = [](Region& file, Region&) {
      file.store(0, 1);
      file.persist(0, kWord);
    };
    EXPECT_EQ(images_after(model, done), (std::set<Image>{{1, 0}}));
  }
}

TEST(Disk, IsNotWaitedForByFencesNorWaitsForMemory) {
  constexpr PersistenceModel kModel = kMachines[0];
  const auto fenced = [](Region& file, Region& memory) {
    file.store(0, 1);
    file.flush(0, kWord);
    memory.store(0, 2);
    memory.persist(0, kWord);
  };
  EXPECT_EQ(images_after(kModel, fenced), (std::set<Image>{{0, 2}, {1, 2}}));
  const auto written = [](Region& file, Region& memory) {
    memory.store(0, 2);
    memory.flush(0, kWord);
    file.store(0, 1);
    file.persist(0, kWord);
  };
  EXPECT_EQ(images_after(kModel, written), (std::set<Image>{{1, 0}, {1, 2}}));
}

// Only pages that have changed are transferred, once each.
TEST(Disk, TakesItsBandwidthAndTheLatencyOfASync) {
  Profile profile = testbed();
  profile.disk = {.bandwidth = 1e9, .sync = Milliseconds(1), .system_call = {}};
  SimPlatform platform(profile, 1);
  platform.start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto file = thread.node.create_region("file", 1 * MiB, pmem::Medium::disk);
    for (Bytes at = 0; at < 64 * KiB; at += kWord) file->store(at, 1);
    co_await yield();
    for (const Picoseconds transfer : {Picoseconds(65'536'000), Picoseconds{}}) {
      const Time before = thread.executor.now();
      file->persist(0, file->size());
      co_await yield();
      EXPECT_EQ(thread.executor.now() - before, Milliseconds(1) + transfer);
    }
  });
  platform.run();
}

// Behind a power failure nothing of a file is in memory.
TEST(Disk, IsReadOncePageByPage) {
  Profile profile = testbed();
  profile.disk = {.bandwidth = 1e9, .sync = Milliseconds(1), .system_call = {}};
  SimPlatform platform(profile, 2);
  platform.track_durability(kMachines[0]);
  platform.local_node(0)->create_region("file", 64 * KiB, pmem::Medium::disk);
  std::vector<Picoseconds> took;
  platform.at(Time(Milliseconds(1)), [&] {
    pmem::Enumerator choices;
    choices.next();
    platform.fail_power(0, choices);
    platform.start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto file = thread.node.open_region("file");
      for (int i = 0; i < 2; ++i) {
        const Time before = thread.executor.now();
        file->load(8 * KiB);
        co_await yield();
        took.push_back(thread.executor.now() - before);
      }
    });
  });
  platform.start(1, 1, CompletionMode::polling,
                 [](Thread&) -> Task<> { co_await sleep_for(Milliseconds(20)); });
  platform.run();
  ASSERT_EQ(took.size(), 2U);
  EXPECT_EQ(took[0] - took[1], Picoseconds(4'096'000));
}

}  // namespace
}  // namespace perdura::sim::test
