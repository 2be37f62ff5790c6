// The record of several lives: what was acknowledged in one must be found in the next.
#include "tests/vm/power_failure/record.h"

#include <gtest/gtest.h>

#include <vector>

#include "platform/base/error.h"
#include "services/kv/history/checker.h"

namespace perdura::test {
namespace {

using history::Kind;
using history::Operation;
using history::Outcome;
using Undone = history::Promise::Undone;

class RecordTest : public testing::Test {
 protected:
  // One after the other, from the clock's start on.
  void live(const std::vector<Operation>& operations) {
    record_.begin_life(kStore);
    kv::OperationLog log = record_.log(kStore, 1);
    Time now{};
    for (Operation operation : operations) {
      operation.start = now += Picoseconds(1);
      const std::size_t place = log.begin(operation);
      if (operation.outcome == Outcome::unknown) continue;
      log.complete(place, operation.version, now += Picoseconds(1), operation.outcome);
    }
  }
  bool accepted(Undone undone) const {
    return check(record_.history(kStore), {.undone = undone}).accepted();
  }

  static Operation put(std::uint64_t version, Outcome outcome = Outcome::ok) {
    return {.key = 1, .version = version, .kind = Kind::put, .outcome = outcome};
  }
  static Operation found(std::uint64_t version) {
    return {.key = 1, .version = version, .kind = Kind::get, .outcome = Outcome::ok};
  }
  static Operation not_found() {
    return {.key = 1, .kind = Kind::get, .outcome = Outcome::not_found};
  }

 private:
  static constexpr std::size_t kStore = 3;
  std::vector<std::uint64_t> memory_ =
      std::vector<std::uint64_t>(Record::bytes_for(20) / sizeof(std::uint64_t) + 1);
  Record record_{std::as_writable_bytes(std::span(memory_))};
};

TEST_F(RecordTest, FindsTheLossOfWhatWasAcknowledged) {
  live({put(1)});
  live({not_found()});
  EXPECT_FALSE(accepted(Undone::nothing));
  EXPECT_TRUE(accepted(Undone::last_version));
}

TEST_F(RecordTest, ClocksThatStartAnewDoNotMakeLivesConcurrent) {
  live({put(1), put(2), put(3)});
  live({found(3), put(4), found(4)});
  live({found(4)});
  EXPECT_TRUE(accepted(Undone::nothing));
}

TEST_F(RecordTest, OnlyTheLastChangeMayBeUndone) {
  live({put(1), put(2), put(3)});
  live({found(2)});
  EXPECT_FALSE(accepted(Undone::nothing));
  EXPECT_TRUE(accepted(Undone::last_version));
  live({found(1)});
  EXPECT_FALSE(accepted(Undone::last_version)) << "what survived one failure survives the next";
}

TEST_F(RecordTest, APutThatWasCutOffIsThereOrNot) {
  live({put(1), put(2, Outcome::unknown)});
  live({found(2)});
  EXPECT_TRUE(accepted(Undone::nothing));
  live({found(1)});
  EXPECT_FALSE(accepted(Undone::nothing)) << "not there again";
}

TEST_F(RecordTest, ALifeThatEndsBeforeItsFirstOperationChangesNothing) {
  live({put(1)});
  live({});
  live({found(1)});
  EXPECT_TRUE(accepted(Undone::nothing));
}

TEST(Record, RefusesTooLittleMemory) {
  std::vector<std::uint64_t> memory(100);
  EXPECT_THROW(Record(std::as_writable_bytes(std::span(memory))), PlatformError);
}

TEST(Record, SaysWhichFileCannotBeMapped) {
  try {
    Record record("/nowhere/record");
    FAIL() << "mapped";
  } catch (const PlatformError& error) {
    EXPECT_STREQ(error.what(), "/nowhere/record: cannot be mapped: No such file or directory");
  }
}

}  // namespace
}  // namespace perdura::test
