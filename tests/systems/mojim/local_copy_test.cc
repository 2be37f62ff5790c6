// A node's copy, and the sync points that arrive in its logs while the region is given to it.
#include "systems/mojim/local_copy.h"

#include <gtest/gtest.h>

#include <functional>
#include <span>
#include <vector>

#include "platform/sim/sim_platform.h"
#include "tests/support/platforms.h"

namespace perdura::systems::mojim {
namespace {

constexpr std::uint64_t kSlots = 4;
constexpr std::uint64_t kTerm = begin_of(1);

class MojimCopy : public testing::Test {
 protected:
  void run(const std::function<void()>& test) {
    sim::SimPlatform platform(sim::load_profile(perdura::test::profile_path("mojim-pmep")), 1);
    platform.start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      Shape shape;
      shape.size = 256;
      shape.logs = 1;
      shape.slots = kSlots;
      shape.slot_bytes = 64;
      regions_.data = thread.node.create_region("data", shape.size, pmem::Medium::pm);
      regions_.logs = thread.node.create_region("logs", shape.logs_size(), pmem::Medium::pm);
      LocalCopy copy(
          *regions_.logs, *regions_.data, shape,
          {.checkpoint_thresh = 1, .has_gaps = true, .flushes = true, .readers = readers_});
      copy_ = &copy;
      copy.data.begin_term(1);
      test();
      co_return;
    });
    platform.run();
  }

  // As a device places it: a sync point of one request that stores `value` to the first word.
  // `count`: of its requests, if there are to be more.
  void place(std::uint64_t position, std::uint64_t number, std::uint64_t value,
             std::uint32_t count = 1) {
    const RequestHeader header{.id = kTerm + number, .length = kWord, .count = count};
    const Bytes slot = copy_->logs.shape().slot_offset(0, position);
    regions_.logs->write(slot, std::as_bytes(std::span(&header, 1)));
    regions_.logs->store(slot + sizeof header, value);
  }
  std::uint64_t value() const { return regions_.data->load(0); }

  Regions regions_;
  LocalCopy* copy_ = nullptr;
  services::DirectReaders* readers_ = nullptr;
};

// It was sent before the region was given, which holds it. What follows it was acknowledged by the
// device, so it must not be lost.
TEST_F(MojimCopy, WhatTheGivenRegionHoldsIsPassedOver) {
  run([&] {
    const std::uint64_t writing = copy_->data.begin_writing(kTerm + 5);
    place(0, 4, 400);
    place(1, 6, 600);
    EXPECT_EQ(copy_->logs.arrived(0, 0), ReceiveLogs::Arrival::complete);
    EXPECT_EQ(copy_->logs.arrived(0, 1), ReceiveLogs::Arrival::complete);
    copy_->data.end_writing(writing, kTerm + 5);
    EXPECT_TRUE(copy_->data.checkpoint());
    EXPECT_EQ(copy_->state.applied(), kTerm + 6);
    EXPECT_EQ(value(), 600U);
    EXPECT_EQ(copy_->logs.free_until(0), 2 + kSlots) << "the slots of both are free";
  });
}

TEST_F(MojimCopy, WhatNobodyHasReportedIsFoundBehindIt) {
  run([&] {
    const std::uint64_t writing = copy_->data.begin_writing(kTerm + 5);
    place(0, 4, 400);
    place(1, 6, 600);
    place(2, 7, 700);
    copy_->logs.look_for_arrived(0);
    copy_->data.end_writing(writing, kTerm + 5);
    EXPECT_TRUE(copy_->data.checkpoint());
    EXPECT_EQ(copy_->state.applied(), kTerm + 7);
    EXPECT_EQ(value(), 700U);
    EXPECT_EQ(copy_->logs.next_position(0), 3U);
  });
}

// The connection on which the region was written before says late that it is.
TEST_F(MojimCopy, TheEndOfAnEarlierWritingDoesNotEndTheNextOne) {
  run([&] {
    const std::uint64_t first = copy_->data.begin_writing(kTerm + 5);
    const std::uint64_t second = copy_->data.begin_writing(kTerm + 5);
    copy_->data.end_writing(first, kTerm + 5);
    EXPECT_TRUE(copy_->state.is_incomplete()) << "readers would see what is being written";
    copy_->data.end_writing(second, kTerm + 5);
    EXPECT_FALSE(copy_->state.is_incomplete());
  });
}

// The copies behind a node that begins empty may lack what was synced before, and are told so only
// by what the node says that it cannot pass on.
TEST_F(MojimCopy, WhatANewNodeWillNotGetCannotBePassedOn) {
  run([&] {
    EXPECT_LT(copy_->followers.skipped(), kTerm + 5);
    copy_->data.skip_to(kTerm + 5);
    EXPECT_TRUE(copy_->state.is_incomplete());
    EXPECT_EQ(copy_->followers.skipped(), kTerm + 5);
  });
}

// A copy that begins later needs all of the region, unless it has got that.
TEST_F(MojimCopy, TellUpToWhatAllHasBeenPassedOn) {
  run([&] {
    copy_->logs.keep_for_others();
    place(0, 1, 100);
    place(1, 2, 200);
    EXPECT_EQ(copy_->logs.arrived(0, 0), ReceiveLogs::Arrival::complete);
    EXPECT_EQ(copy_->logs.arrived(0, 1), ReceiveLogs::Arrival::complete);
    EXPECT_EQ(copy_->logs.passed_id(), kTerm);
    EXPECT_TRUE(copy_->data.checkpoint());
    EXPECT_EQ(copy_->logs.passed_id(), kTerm) << "both are applied, and none is passed on";
    copy_->logs.pass(0, 1);
    EXPECT_EQ(copy_->logs.passed_id(), kTerm + 1);
    copy_->logs.pass(0, 2);
    EXPECT_EQ(copy_->logs.passed_id(), kTerm + 2);
  });
}

// Slots keep what has been applied until they are used again.
TEST_F(MojimCopy, WhatIsThereFromTheLastLapIsNotTakenAgain) {
  run([&] {
    for (std::uint64_t position = 0; position < kSlots; ++position) {
      place(position, position + 1, position);
      EXPECT_EQ(copy_->logs.arrived(0, position), ReceiveLogs::Arrival::complete);
    }
    EXPECT_TRUE(copy_->data.checkpoint());
    copy_->logs.look_for_arrived(0);
    EXPECT_EQ(copy_->logs.next_position(0), kSlots);
    EXPECT_FALSE(copy_->logs.has_work());
    place(kSlots, kSlots + 1, 50);
    copy_->logs.look_for_arrived(0);
    EXPECT_EQ(copy_->logs.next_position(0), kSlots + 1);
    EXPECT_TRUE(copy_->data.checkpoint());
    EXPECT_EQ(value(), 50U);
  });
}

// A connection that broke has left it; the one after it has not filled the slots in front of it.
TEST_F(MojimCopy, APartOfASyncPointIsNoReasonToPassOverSlots) {
  run([&] {
    place(2, 3, 30, 2);
    copy_->logs.look_for_arrived(0);
    EXPECT_EQ(copy_->logs.next_position(0), 0U);
    EXPECT_EQ(copy_->logs.free_until(0), kSlots);
    place(0, 1, 10);
    EXPECT_EQ(copy_->logs.arrived(0, 0), ReceiveLogs::Arrival::complete);
    EXPECT_TRUE(copy_->data.checkpoint());
    EXPECT_EQ(value(), 10U);
  });
}

// It is behind one that still has to be applied.
TEST_F(MojimCopy, SlotsThatArePassedOverBecomeFreeWithThoseInFront) {
  run([&] {
    place(0, 1, 10);
    EXPECT_EQ(copy_->logs.arrived(0, 0), ReceiveLogs::Arrival::complete);
    place(1, 1, 10);
    EXPECT_EQ(copy_->logs.arrived(0, 1), ReceiveLogs::Arrival::complete);
    EXPECT_EQ(copy_->logs.free_until(0), kSlots);
    EXPECT_TRUE(copy_->data.checkpoint());
    EXPECT_EQ(copy_->logs.free_until(0), 2 + kSlots);
  });
}

// --- readers of the data area itself -------------------------------------------------------------

struct Readers final : services::DirectReaders {
  bool begin_change() override {
    changes = true;
    return are_there;
  }
  bool withdraw(std::span<const services::MemoryRange> ranges) override {
    asked = {ranges.begin(), ranges.end()};
    return have_left;
  }
  void exclude() override {
    changes = true;
    ++exclusions;
  }
  void end_change() override { changes = false; }

  bool are_there = true;
  bool have_left = false;
  bool changes = true;
  int exclusions = 0;
  std::vector<services::MemoryRange> asked;
};

TEST_F(MojimCopy, NothingIsAppliedBeforeReadersHaveLeftItsPlace) {
  Readers readers;
  readers_ = &readers;
  run([&] {
    EXPECT_FALSE(readers.changes);
    place(0, 1, 100);
    EXPECT_EQ(copy_->logs.arrived(0, 0), ReceiveLogs::Arrival::complete);
    EXPECT_FALSE(copy_->data.checkpoint());
    ASSERT_EQ(readers.asked.size(), 1U);
    EXPECT_EQ(readers.asked[0].offset, 0U);
    EXPECT_EQ(readers.asked[0].length, kWord);
    // They have not been asked to leave the place of this one, and do not have to.
    place(1, 2, 200);
    EXPECT_EQ(copy_->logs.arrived(0, 1), ReceiveLogs::Arrival::complete);
    EXPECT_FALSE(copy_->data.checkpoint());
    EXPECT_EQ(value(), 0U);
    readers.have_left = true;
    EXPECT_TRUE(copy_->data.checkpoint());
    EXPECT_EQ(value(), 100U);
    EXPECT_FALSE(readers.changes);
    EXPECT_TRUE(copy_->data.checkpoint());
    EXPECT_EQ(value(), 200U);
    EXPECT_FALSE(readers.changes);
  });
}

TEST_F(MojimCopy, WithoutReadersNobodyIsAsked) {
  Readers readers;
  readers.are_there = false;
  readers_ = &readers;
  run([&] {
    place(0, 1, 100);
    EXPECT_EQ(copy_->logs.arrived(0, 0), ReceiveLogs::Arrival::complete);
    EXPECT_TRUE(copy_->data.checkpoint());
    EXPECT_EQ(value(), 100U);
    EXPECT_TRUE(readers.asked.empty());
    EXPECT_FALSE(readers.changes);
  });
}

// What they had to leave already stays withdrawn, and what has arrived is applied without them.
TEST_F(MojimCopy, ReadersAreExcludedUntilTheCopyIsComplete) {
  Readers readers;
  readers_ = &readers;
  run([&] {
    const int before = readers.exclusions;
    place(0, 6, 600);
    EXPECT_EQ(copy_->logs.arrived(0, 0), ReceiveLogs::Arrival::complete);
    const std::uint64_t writing = copy_->data.begin_writing(kTerm + 5);
    EXPECT_EQ(readers.exclusions, before + 1);
    EXPECT_TRUE(readers.changes);
    copy_->data.end_writing(writing, kTerm + 6);
    EXPECT_TRUE(readers.changes) << "the copy still lacks a sync point";
    EXPECT_TRUE(copy_->data.checkpoint());
    EXPECT_EQ(value(), 600U);
    EXPECT_TRUE(readers.asked.empty());
    EXPECT_FALSE(readers.changes);
  });
}

}  // namespace
}  // namespace perdura::systems::mojim
