// A data area on a disk (M-syncdisk), and how it gets into persistent memory and back.
#include <gtest/gtest.h>

#include <functional>

#include "platform/sim/sim_platform.h"
#include "systems/mojim/local_copy.h"
#include "tests/support/platforms.h"

namespace perdura::systems::mojim {
namespace {

constexpr std::uint64_t kMirrorSlots = 4;
constexpr std::uint64_t kMirrorTerm = begin_of(1);
constexpr auto kDisk = pmem::Medium::disk;
constexpr auto kMemory = pmem::Medium::pm;

Shape mirror_shape() {
  Shape shape;
  shape.size = 256;
  shape.logs = 1;
  shape.slots = kMirrorSlots;
  shape.slot_bytes = 64;
  return shape;
}

void on_a_node(const std::function<Task<>(Node&)>& test) {
  sim::SimPlatform platform(sim::load_profile(perdura::test::profile_path("mojim-pmep")), 1);
  platform.start(0, 0, CompletionMode::polling,
                 [&](Thread& thread) -> Task<> { co_await test(thread.node); });
  platform.run();
}

// A mirror that is opened, and what arrives there.
struct Mirror {
  explicit Mirror(Node& node)
      : regions(open_regions(node, "data", mirror_shape(), kDisk)),
        copy(*regions.logs, *regions.data, mirror_shape(),
             {.checkpoint_thresh = 1, .has_gaps = true, .flushes = true}) {}

  // A sync point of one request that stores to the first word.
  void arrive(std::uint64_t position, std::uint64_t number, std::uint64_t value,
              std::uint32_t copied = 0) {
    const RequestHeader header{
        .id = kMirrorTerm + number, .length = kWord, .count = 1, .copied = copied};
    const Bytes slot = mirror_shape().slot_offset(0, position);
    regions.logs->write(slot, std::as_bytes(std::span(&header, 1)));
    regions.logs->store(slot + sizeof header, value);
    EXPECT_EQ(copy.logs.arrived(0, position), ReceiveLogs::Arrival::complete);
  }
  std::uint64_t value() {
    std::uint64_t value = 0;
    copy.data.read(0, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }

  Regions regions;
  LocalCopy copy;
};

TEST(MojimOnADisk, SlotsAreFreeWhenTheDiskHasWhatTheyHold) {
  on_a_node([](Node& node) -> Task<> {
    Mirror mirror(node);
    mirror.copy.data.begin_term(1);
    EXPECT_EQ(mirror.regions.data->medium(), kDisk);
    mirror.arrive(0, 1, 100);
    EXPECT_FALSE(mirror.copy.logs.wants_save(0)) << "the checkpoint comes first";
    EXPECT_TRUE(mirror.copy.data.checkpoint());
    EXPECT_EQ(mirror.value(), 100U) << "readers need not wait for the disk";
    EXPECT_EQ(mirror.copy.state.applied(), kMirrorTerm + 1);
    EXPECT_EQ(mirror.copy.logs.free_until(0), kMirrorSlots);
    EXPECT_EQ(mirror.regions.logs->load(kAppliedOffset), kMirrorTerm);
    EXPECT_TRUE(mirror.copy.logs.wants_save(0));
    co_await mirror.copy.data.save();
    EXPECT_EQ(mirror.copy.logs.free_until(0), 1 + kMirrorSlots);
    EXPECT_EQ(mirror.regions.logs->load(kAppliedOffset), kMirrorTerm + 1);
    EXPECT_FALSE(mirror.copy.logs.wants_save(0));
  });
}

TEST(MojimOnADisk, RecoveryReplaysWhatTheDiskMayLack) {
  on_a_node([](Node& node) -> Task<> {
    {
      Mirror mirror(node);
      mirror.copy.data.begin_term(1);
      mirror.arrive(0, 1, 100);
      EXPECT_TRUE(mirror.copy.data.checkpoint());
      co_await mirror.copy.data.save();
      mirror.arrive(1, 2, 200);
      EXPECT_TRUE(mirror.copy.data.checkpoint());
      mirror.regions.data->store(0, 100);  // as if it had not been written back
    }
    Mirror again(node);
    EXPECT_EQ(again.value(), 200U);
    EXPECT_EQ(again.copy.logs.counts().replayed, 1U);
    EXPECT_EQ(again.copy.logs.free_until(0), 1 + kMirrorSlots);
    EXPECT_TRUE(again.copy.logs.wants_save(0));
  });
}

// A failure in between must not leave a copy that counts as complete and is not.
TEST(MojimOnADisk, ACopyIsCompleteWhenTheDiskHasTheRegion) {
  on_a_node([](Node& node) -> Task<> {
    Mirror mirror(node);
    mirror.copy.state.set_incomplete(true);
    mirror.copy.data.begin_term(1);
    EXPECT_TRUE(mirror.copy.state.needs_region());
    mirror.arrive(0, 1, 100, kEndOfCopy);
    EXPECT_TRUE(mirror.copy.data.checkpoint());
    EXPECT_TRUE(mirror.copy.state.is_incomplete());
    EXPECT_FALSE(mirror.copy.state.needs_region()) << "the primary need not give it once more";
    co_await mirror.copy.data.save();
    EXPECT_FALSE(mirror.copy.state.is_incomplete());
    // Another primary, whose region it is not, comes before the disk has got this one.
    mirror.copy.state.set_incomplete(true);
    mirror.arrive(1, 2, 200, kEndOfCopy);
    EXPECT_TRUE(mirror.copy.data.checkpoint());
    mirror.copy.state.set_incomplete(true);
    co_await mirror.copy.data.save();
    EXPECT_TRUE(mirror.copy.state.is_incomplete());
  });
}

TEST(MojimOnADisk, ANewPrimaryWaitsForTheDisk) {
  on_a_node([](Node& node) -> Task<> {
    Mirror mirror(node);
    mirror.copy.data.begin_term(1);
    mirror.arrive(0, 1, 100);
    mirror.copy.data.begin_term(2);
    EXPECT_EQ(mirror.value(), 100U);
    EXPECT_EQ(mirror.regions.logs->load(kAppliedOffset), begin_of(2));
    EXPECT_EQ(mirror.copy.logs.free_until(0), 1 + kMirrorSlots)
        << "nothing is left for the disk to get";
    co_return;
  });
}

TEST(MojimOnADisk, TheDataAreaIsWhereItWasMovedLast) {
  on_a_node([](Node& node) -> Task<> {
    const auto open = [&](pmem::Medium medium, std::uint64_t expected, std::uint64_t stored) {
      const Regions regions = open_regions(node, "data", mirror_shape(), medium);
      EXPECT_EQ(regions.data->medium(), medium);
      EXPECT_EQ(regions.data->load(0), expected);
      regions.data->store(0, stored);
      regions.data->persist(0, kWord);
      return !regions.created;
    };
    EXPECT_FALSE(open(kDisk, 0, 1));
    EXPECT_TRUE(open(kDisk, 1, 2));
    EXPECT_TRUE(open(kMemory, 2, 3));
    EXPECT_TRUE(open(kMemory, 3, 4));
    EXPECT_TRUE(open(kDisk, 4, 5));
    EXPECT_TRUE(open(kMemory, 5, 6));
    co_return;
  });
}

}  // namespace
}  // namespace perdura::systems::mojim
