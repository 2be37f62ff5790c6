// Transactions on containers, cut off after each store, flush and fence: each image that recovery
// may find holds what was there before the transaction or what is there after it, and has lost no
// memory. So does each image that a failure in recovery may leave.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "tests/support/explored_text.h"
#include "tests/support/seed.h"
#include "tests/systems/mcas/containers/support.h"

namespace perdura::systems::mcas::containers {
namespace {

using namespace test;

constexpr pmem::PersistenceModel kModel{pmem::PersistenceDomain::dmp, false};

class ContainersCrash : public testing::Test {
 protected:
  ContainersCrash() : live_(Image(Containers::kMemory), kModel) {
    format_in(live_.region);
    live_.memory->settle();
    all_.emplace(live_.region);
  }

  // What recovery has found wrong.
  std::string problem_of(const Image& image) {
    ++images_;
    PlainMemory found(image);
    Containers recovered(found.region());
    undone_ += recovered.arena.undone() ? 1 : 0;
    if (const std::string problem = recovered.audit(); !problem.empty()) return problem;
    const Model contents = recovered.contents();
    if (contents == before_ || contents == after_) return {};
    return fmt::format("found {}\n, before {}\n, after {}", contents.text(), before_.text(),
                       after_.text());
  }
  void check(const Image& image, std::string_view when) {
    if (HasFailure()) return;
    if (const std::string problem = problem_of(image); !problem.empty()) {
      ADD_FAILURE() << what_ << when << ", " << live_.memory->step_text() << "; "
                    << perdura::test::lost_text(image, live_.memory->visible()) << ": " << problem;
    }
  }
  // The power fails again after each step of recovery.
  void check_recovery_of(const Image& image, bool all) {
    ExploredRegion again(image, kModel);
    again.memory->after_step = [&] {
      if (all) {
        again.memory->for_each_image([&](const Image& one) { check(one, "; in recovery"); });
        return;
      }
      check(again.memory->visible(), "; in recovery");
      pmem::RandomChoices random(images_);
      check(again.memory->image(random), "; in recovery");
    };
    const Containers recovering(again.region);
  }
  struct Change {
    unsigned kind;
    std::uint64_t a;
    std::uint64_t b;
  };
  using Changes = std::vector<Change>;

  static bool transact(Containers& real, Model& model, const Changes& changes) {
    return real.arena.transact([&] {
      for (const Change& one : changes) change(real, model, one.kind, one.a, one.b);
    });
  }
  // One transaction. It is made in a copy first, so that what must be there after it is known.
  void transact(std::string what, const Changes& changes) {
    what_ = std::move(what);
    PlainMemory copy(live_.memory->visible());
    Containers other(copy.region());
    after_ = before_;
    ASSERT_TRUE(transact(other, after_, changes));
    Model model = before_;
    ASSERT_TRUE(transact(*all_, model, changes));
    before_ = after_;
    // It is durable when it is completed.
    pmem::LeastChoices least;
    check(live_.memory->image(least), "; completed");
  }

  ExploredRegion live_;
  std::optional<Containers> all_;
  Model before_;
  Model after_;
  std::string what_;
  std::uint64_t images_ = 0;
  std::uint64_t undone_ = 0;
};

// Every image of every step of each kind of change, alone and several in one transaction; and every
// image of every step of recovery, of those images that keep most and least of each step.
TEST_F(ContainersCrash, EveryImageIsBeforeOrAfterTheTransaction) {
  const std::vector<Changes> transactions{
      {{0, 1, 0}},                         // the first element allocates
      {{0, 2, 0}, {0, 3, 0}, {0, 4, 0}},   // several calls
      {{0, 5, 0}},                         // the vector grows
      {{3, 1, 9}},                         //
      {{2, 0, 0}},                         //
      {{7, 3, 8}},                         // the first key of a map
      {{7, 3, 9}},                         // its value
      {{7, 4, 1}},                         // buckets are divided
      {{8, 3, 0}},                         //
      {{9, 0, 8}},                         // the only element of a list
      {{9, 0, 5}},                         // before it
      {{9, 2, 0}},                         // behind it
      {{10, 1, 0}},                        // from the middle
      {{0, 7, 0}, {8, 4, 0}, {10, 0, 0}},  // of three containers
      {{10, 0, 0}, {9, 0, 3}},             // memory that it frees is not what it allocates
  };
  perdura::test::DistinctImages seen;
  live_.memory->after_step = [&] {
    if (HasFailure()) return;
    live_.memory->for_each_image([&](const Image& image) {
      if (seen.insert(image).second) check(image, "");
    });
    check_recovery_of(live_.memory->visible(), true);
    pmem::LeastChoices least;
    check_recovery_of(live_.memory->image(least), true);
  };
  for (std::size_t i = 0; i < transactions.size() && !HasFailure(); ++i) {
    transact(fmt::format("transaction {}", i), transactions[i]);
  }
  EXPECT_GT(undone_, 1000U);
  EXPECT_GT(images_, 50000U);
}

// A transaction that is rolled back because there is no room, cut off anywhere.
TEST_F(ContainersCrash, ARollbackIsRecoveredFrom) {
  transact("filling", {{0, 1, 0}, {7, 1, 40}, {9, 0, 3}});
  what_ = "a rollback";
  live_.memory->after_step = [&] {
    if (HasFailure()) return;
    live_.memory->for_each_image([&](const Image& image) { check(image, ""); });
  };
  Model ignored = before_;
  EXPECT_FALSE(all_->arena.transact([&] {
    for (const Change& one : Changes{{0, 2, 0}, {8, 1, 0}, {10, 0, 0}}) {
      change(*all_, ignored, one.kind, one.a, one.b);
    }
    all_->arena.allocate(all_->arena.free_bytes());
  }));
  EXPECT_EQ(all_->contents(), before_);
  EXPECT_GT(undone_, 10U);
}

// Many transactions, some of many changes, with a few images of each step.
TEST_F(ContainersCrash, LosesNothingAndInventsNothing) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  std::uint64_t steps = 0;
  live_.memory->after_step = [&] {
    if (HasFailure()) return;
    pmem::LeastChoices least;
    const Image image = live_.memory->image(least);
    check(image, "");
    check(live_.memory->visible(), "");
    pmem::RandomChoices choices(random());
    check(live_.memory->image(choices), "");
    if (++steps % 20 == 0) check_recovery_of(image, false);
  };
  for (int i = 0; i < 300 && !HasFailure(); ++i) {
    Changes changes(1 + random() % 3);
    for (Change& one : changes) {
      one = {static_cast<unsigned>(random() % 11), random() % 1000, random() % 1000};
    }
    transact(fmt::format("random transaction {}", i), changes);
  }
  EXPECT_GT(undone_, 1000U);
}

// A process dies after any of its steps, which leaves what is visible; what its successor does then
// must survive a power failure, although nobody has made durable what the dead one has left.
TEST_F(ContainersCrash, APowerFailureAfterTheDeathOfAProcess) {
  transact("filling", {{0, 1, 0}, {7, 1, 40}, {9, 0, 3}});
  const Image image = live_.memory->visible();
  const Model empty = before_;
  const Changes changes{{0, 2, 0}, {7, 1, 60}, {10, 0, 0}};
  const Changes more{{3, 0, 7}, {0, 2, 0}};
  live_.memory->record();
  after_ = before_;
  ASSERT_TRUE(transact(*all_, after_, changes));
  const perdura::test::Steps steps = live_.memory->recorded();
  const Model full = after_;
  std::uint64_t done = 0;
  for (std::size_t death = 0; death <= steps.size() && !HasFailure(); ++death) {
    what_ = fmt::format("death after {} of {} steps", death, steps.size());
    ExploredRegion memory(image, kModel);
    const auto first = steps.begin();
    memory.memory->take({first, first + static_cast<std::ptrdiff_t>(death)});
    before_ = empty;
    after_ = full;
    memory.memory->after_step = [&] {
      if (HasFailure()) return;
      memory.memory->for_each_image([&](const Image& one) { check(one, "; its successor"); });
    };
    Containers successor(memory.region);
    before_ = successor.contents();
    EXPECT_TRUE(before_ == empty || before_ == full) << what_;
    done += before_ == full ? 1 : 0;
    PlainMemory copy(memory.memory->visible());
    Containers other(copy.region());
    after_ = before_;
    ASSERT_TRUE(transact(other, after_, more));
    Model model = before_;
    ASSERT_TRUE(transact(successor, model, more));
  }
  EXPECT_GT(done, 0U);
  EXPECT_LT(done, steps.size() / 2);
}

}  // namespace
}  // namespace perdura::systems::mcas::containers
