// What a program does to a region through a view is to the simulation what the region's own calls
// are: it takes the same time, peers see the same of it at every moment, and a power failure at any
// moment may leave the same.
#include "platform/pmem/view.h"

#include <gtest/gtest.h>

#include <random>

#include "platform/runtime/work.h"
#include "tests/platform/sim/power.h"

namespace perdura::sim::test {
namespace {

using pmem::View;

constexpr PersistenceModel kModels[] = {{PersistenceDomain::dmp, false},
                                        {PersistenceDomain::dmp, true},
                                        {PersistenceDomain::mhp, true},
                                        {PersistenceDomain::wsp, true}};
constexpr std::size_t kWords = 64;  // eight lines

struct Step {
  enum class Kind : std::uint8_t { store, small_store, write, load, flush, drain };
  Kind kind;
  std::size_t first;
  std::size_t count;
  std::uint64_t value;
};

std::vector<Step> random_steps(std::mt19937& random, std::size_t count, std::size_t words,
                               std::size_t most) {
  std::vector<Step> steps;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t first = random() % words;
    steps.push_back({static_cast<Step::Kind>(random() % 6), first,
                     1 + random() % std::min(words - first, most), i + 1});
  }
  return steps;
}

void by_region(Region& region, const Step& step) {
  const Bytes at = step.first * kWord;
  switch (step.kind) {
    case Step::Kind::store:
      return region.store(at, step.value);
    case Step::Kind::small_store:
      return region.write_object(at, static_cast<std::uint16_t>(step.value));
    case Step::Kind::write: {
      const std::vector<std::uint64_t> values(step.count, step.value);
      return region.write(at, std::as_bytes(std::span(values)));
    }
    case Step::Kind::load:
      return static_cast<void>(region.load(at));
    case Step::Kind::flush:
      return region.flush(at, step.count * kWord);
    case Step::Kind::drain:
      return region.drain();
  }
}

void by_view(Region& region, const Step& step) {
  const View<std::uint64_t> view(region);
  switch (step.kind) {
    case Step::Kind::store:
      view[step.first] = step.value;
      return;
    case Step::Kind::small_store:
      return View<std::uint16_t>(region).store(step.first * 4,
                                               static_cast<std::uint16_t>(step.value));
    case Step::Kind::write:
      return view.fill(step.first, step.count, step.value);
    case Step::Kind::load:
      return static_cast<void>(view.load(step.first));
    case Step::Kind::flush:
      return view.flush(step.first, step.count);
    case Step::Kind::drain:
      return view.drain();
  }
}

using Access = void (*)(Region&, const Step&);

Program program(Access access, const std::vector<Step>& steps) {
  return [access, &steps](Thread&, Region& pool) -> Task<> {
    for (const Step& step : steps) access(pool, step);
    co_return;
  };
}

std::set<Time> moments_of(PersistenceModel model, const Program& program) {
  SimPlatform platform(testbed(), 1);
  platform.track_durability(model);
  platform.list_crash_points();
  const auto pool = platform.local_node(0)->create_region("pool", kPoolSize, pmem::Medium::pm);
  platform.start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await program(thread, *pool);
    co_await sleep_for(Milliseconds(1));
  });
  platform.run();
  return platform.crash_points();
}

std::set<Image> images_at(PersistenceModel model, const Program& program,
                          const std::vector<Bytes>& words, Time when) {
  std::set<Image> images;
  pmem::Enumerator choices;
  while (choices.next()) images.insert(run_and_fail(model, {program}, words, choices, when));
  return images;
}

TEST(PmemView, APowerFailureAtAnyMomentLeavesWhatItLeavesOfTheRegionsOwnCalls) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  // Few words, for the images are as many as the ways in which lines may survive.
  constexpr std::size_t kFew = 12;
  std::vector<Bytes> words(kFew);
  for (std::size_t i = 0; i < kFew; ++i) words[i] = i;
  std::size_t images_seen = 0;
  std::size_t moments_seen = 0;
  for (int round = 0; round < 8; ++round) {
    const std::vector<Step> steps = random_steps(random, 6, kFew, 3);
    for (const PersistenceModel& model : kModels) {
      const auto moments = moments_of(model, program(by_region, steps));
      ASSERT_EQ(moments_of(model, program(by_view, steps)), moments);
      for (const Time moment : moments) {
        const auto images = images_at(model, program(by_region, steps), words, moment);
        EXPECT_EQ(images_at(model, program(by_view, steps), words, moment), images);
        images_seen += images.size();
      }
      moments_seen += moments.size();
    }
  }
  EXPECT_GT(images_seen, moments_seen) << "there must be something to choose";
}

// What a program may rely on that syncs what it has stored (msync) before it goes on.
TEST(PmemView, WhatWasSyncedIsThereBeforeWhatIsStoredAfter) {
  constexpr std::size_t kNext = kCacheLine / kWord;
  const Program program = [](Thread&, Region& pool) -> Task<> {
    const View<std::uint64_t> view(pool);
    view[1] = 1;
    view.persist(1, 1);
    view[kNext] = 2;
    co_return;
  };
  const auto moments = moments_of(kModels[0], program);
  ASSERT_GE(moments.size(), 3U);
  std::set<Image> all;
  for (const Time moment : moments) {
    all.merge(images_at(kModels[0], program, {1, kNext}, moment));
  }
  EXPECT_EQ(all, (std::set<Image>{{0, 0}, {1, 0}, {1, 2}}));
}

// A peer READs again and again while a program writes: what it saw, and when the program ended.
struct Watched {
  std::vector<std::vector<std::uint64_t>> reads;
  Time end{};
  pmem::Writes writes;
};

Watched watch(Access access, const std::vector<Step>& steps) {
  Watched seen;
  SimPlatform platform(testbed(), 2);
  bool connected = false;
  bool writing = true;
  platform.start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("pool", kPoolSize, pmem::Medium::pm);
    const auto memory = thread.endpoint.register_memory(*region, fabric::Access::remote_all);
    const auto request = co_await thread.endpoint.next_connection();
    const auto peer = request->accept({}, std::as_bytes(std::span(&memory.key, 1)));
    while (!connected) co_await sleep_for(Microseconds(1));
    for (std::size_t i = 0; i < steps.size(); ++i) {
      access(*region, steps[i]);
      // Several steps without a pause, so that what becomes visible lies ahead.
      charge(Work::crc32, 5000);
      if (i % 4 == 3) co_await sleep_for(Nanoseconds(100));
    }
    writing = false;
    seen.end = thread.executor.now();
    while (connected) co_await sleep_for(Microseconds(1));
    seen.writes = thread.node.pm_writes();
  });
  platform.start(1, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("local", 4096, pmem::Medium::dram);
    const auto memory = thread.endpoint.register_memory(*region, fabric::Access::local);
    auto connection = co_await thread.endpoint.connect({0, 0}, {}, {});
    fabric::RemoteKey key;
    std::memcpy(&key, connection.private_data.data(), sizeof key);
    connected = true;
    while (writing) {
      co_await connection.queue_pair->read(memory.local(0, kWords * kWord), {key, 0});
      std::vector<std::uint64_t> words(kWords);
      region->read(0, std::as_writable_bytes(std::span(words)));
      seen.reads.push_back(words);
    }
    connected = false;
  });
  platform.run();
  return seen;
}

TEST(PmemView, PeersSeeAtEachMomentWhatTheySeeOfTheRegionsOwnCalls) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const std::vector<Step> steps = random_steps(random, 400, kWords, kWords);
  const Watched region = watch(by_region, steps);
  const Watched view = watch(by_view, steps);
  EXPECT_EQ(view.reads, region.reads);
  EXPECT_EQ(view.end, region.end);
  EXPECT_EQ(view.writes, region.writes);
  const std::set<std::vector<std::uint64_t>> different(region.reads.begin(), region.reads.end());
  EXPECT_GT(different.size(), 20U);
}

}  // namespace
}  // namespace perdura::sim::test
