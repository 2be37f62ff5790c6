// What the specification of pools allows and refuses: histories by hand, in which something may
// have been interrupted.
#include "services/objects/specification.h"

#include <gtest/gtest.h>

namespace perdura::services::test {
namespace {

using objects::Error;
using Operation = ObjectsSpecification::Operation;
using Kind = Operation::Kind;
using Words = ObjectsSpecification::Words;

// Operations one after the other.
class History {
 public:
  History& done(Operation operation) { return add(std::move(operation), true); }
  History& failed(Operation operation, Error error) {
    operation.error = error;
    return add(std::move(operation), true);
  }
  History& interrupted(Operation operation) { return add(std::move(operation), false); }
  bool possible() const {
    const ObjectsSpecification specification{2, 2};
    return check_linearizability(specification, std::span(calls_)).accepted();
  }

 private:
  History& add(Operation operation, bool answered) {
    const auto at = [](std::size_t number) {
      return Time(Microseconds(static_cast<std::int64_t>(number)));
    };
    const std::size_t number = 2 * calls_.size();
    calls_.push_back({std::move(operation), at(number), at(number + 1), answered});
    return *this;
  }
  std::vector<Call<Operation>> calls_;
};

Operation create(std::size_t pool = 0) { return {.kind = Kind::create, .pool = pool}; }
Operation open() { return {.kind = Kind::open}; }
Operation remove(std::size_t pool = 0) { return {.kind = Kind::remove, .pool = pool}; }
Operation put(Words words, std::size_t key = 0) {
  return {.kind = Kind::put, .key = key, .words = std::move(words)};
}
Operation part(std::size_t first, Words words) {
  return {.kind = Kind::put_part, .direct = true, .first = first, .words = std::move(words)};
}
Operation get(Words found, std::size_t key = 0) {
  return {.kind = Kind::get, .key = key, .words = std::move(found)};
}
Operation erase() { return {.kind = Kind::erase}; }

History with_value() { return History().done(create()).done(put({1, 1, 1, 1})); }

// A value of so many bytes, all of them 1.
Words ones(std::size_t length) {
  const std::vector<std::byte> bytes(length, std::byte{1});
  return ObjectsSpecification::words_of(bytes);
}

TEST(ObjectsSpecification, AValueMayEndWithinAWord) {
  const auto with_value_of = [](std::size_t length) {
    return History().done(create()).done(put(ones(length)));
  };
  for (std::size_t length = 9; length <= 24; ++length) {
    for (std::size_t found = 9; found <= 24; ++found) {
      EXPECT_EQ(with_value_of(length).done(get(ones(found))).possible(), found == length)
          << found << " bytes of " << length;
    }
  }
  // A part goes no further than the last whole word.
  EXPECT_TRUE(
      with_value_of(20).done(part(1, {7})).done(get({ones(8)[0], 7, ones(4)[0]})).possible());
  EXPECT_FALSE(with_value_of(20).done(part(2, {7})).possible());
  EXPECT_TRUE(with_value_of(20).failed(part(2, {7}), Error::invalid).possible());
}

TEST(ObjectsSpecification, ValuesAreThoseThatWerePutLast) {
  EXPECT_TRUE(with_value().done(get({1, 1, 1, 1})).possible());
  EXPECT_FALSE(with_value().done(get({1, 1, 1})).possible()) << "too short";
  EXPECT_FALSE(with_value().done(get({1, 1, 1, 2})).possible()) << "torn";
  EXPECT_FALSE(with_value().done(put({2, 2})).done(get({1, 1, 1, 1})).possible()) << "stale";
  EXPECT_FALSE(with_value().done(get({1, 1, 1, 1}, 1)).possible()) << "of another key";
  EXPECT_FALSE(with_value().failed(get({}), Error::not_found).possible()) << "lost";
  EXPECT_TRUE(with_value().done(erase()).failed(get({}), Error::not_found).possible());
  EXPECT_FALSE(with_value().done(erase()).done(get({1, 1, 1, 1})).possible()) << "it is back";
  EXPECT_TRUE(with_value().done(erase()).failed(erase(), Error::not_found).possible());
  EXPECT_FALSE(with_value().failed(get({}), Error::failed).possible()) << "no reason for that";
}

TEST(ObjectsSpecification, AnInterruptedPutIsWholeOrHasNotHappened) {
  const auto cut_off = [] { return with_value().interrupted(put({2, 2, 2, 2})); };
  EXPECT_TRUE(cut_off().done(get({1, 1, 1, 1})).possible());
  EXPECT_TRUE(cut_off().done(get({2, 2, 2, 2})).possible());
  EXPECT_FALSE(cut_off().done(get({2, 2, 1, 1})).possible());
  EXPECT_FALSE(cut_off().done(get({2, 2, 2, 2})).done(get({1, 1, 1, 1})).possible());
}

TEST(ObjectsSpecification, APartChangesWhatItIsOf) {
  const auto parted = [] { return with_value().done(part(1, {2, 2})); };
  EXPECT_TRUE(parted().done(get({1, 2, 2, 1})).possible());
  EXPECT_FALSE(parted().done(get({1, 1, 2, 1})).possible()) << "acknowledged, and torn";
  EXPECT_FALSE(parted().done(get({1, 1, 1, 1})).possible()) << "acknowledged, and lost";
  EXPECT_TRUE(with_value().failed(part(3, {2, 2}), Error::invalid).possible()) << "outside of it";
  EXPECT_FALSE(with_value().done(part(3, {2, 2})).possible());
  EXPECT_FALSE(with_value().failed(part(2, {2, 2}), Error::invalid).possible()) << "inside of it";
  EXPECT_TRUE(History().done(create()).failed(part(0, {2}), Error::not_found).possible());
}

TEST(ObjectsSpecification, AnInterruptedPartLeavesAnyOfItsWordsNewOrOld) {
  const auto cut_off = [] { return with_value().interrupted(part(1, {2, 2})); };
  for (const Words& found : {Words{1, 1, 1, 1}, {1, 2, 1, 1}, {1, 1, 2, 1}, {1, 2, 2, 1}}) {
    EXPECT_TRUE(cut_off().done(get(found)).possible());
    EXPECT_TRUE(cut_off().done(get(found)).done(get(found)).possible());
  }
  EXPECT_FALSE(cut_off().done(get({2, 1, 1, 1})).possible()) << "outside of the part";
  EXPECT_FALSE(cut_off().done(get({1, 3, 1, 1})).possible()) << "neither new nor old";
  // The put that was interrupted may still happen, but only whole: word 2 cannot become old again.
  EXPECT_FALSE(cut_off().done(get({1, 1, 2, 1})).done(get({1, 2, 1, 1})).possible());
  EXPECT_FALSE(cut_off().done(get({1, 2, 2, 1})).done(get({1, 1, 1, 1})).possible());
  EXPECT_FALSE(cut_off().done(part(1, {3})).done(get({1, 2, 3, 1})).possible());
  EXPECT_TRUE(cut_off().done(part(1, {3})).done(get({1, 3, 2, 1})).possible());
  EXPECT_FALSE(
      cut_off().done(put({4, 4, 4, 4})).done(get({4, 4, 2, 4})).done(get({4, 4, 4, 4})).possible())
      << "what has been put anew is not old";
}

TEST(ObjectsSpecification, PoolsComeAndGoWithAllTheirKeys) {
  EXPECT_TRUE(History().failed(open(), Error::not_found).done(create()).done(open()).possible());
  EXPECT_FALSE(History().done(open()).possible());
  EXPECT_FALSE(with_value().failed(open(), Error::not_found).possible()) << "the pool is lost";
  EXPECT_FALSE(with_value().done(create()).possible()) << "it is there";
  EXPECT_TRUE(with_value().failed(create(), Error::exists).possible());
  EXPECT_FALSE(History().failed(create(), Error::exists).possible());
  EXPECT_TRUE(with_value().failed(remove(), Error::busy).done(get({1, 1, 1, 1})).possible());
  EXPECT_FALSE(History().failed(remove(), Error::busy).possible());
  const auto removed = [] { return with_value().done(remove()); };
  EXPECT_TRUE(removed().failed(remove(), Error::not_found).possible());
  EXPECT_FALSE(removed().done(open()).possible()) << "it is back";
  EXPECT_FALSE(removed().done(create()).done(get({1, 1, 1, 1})).possible())
      << "what was in the former pool can be read";
  EXPECT_TRUE(removed().done(create()).failed(get({}), Error::not_found).possible());
  EXPECT_TRUE(with_value().failed(remove(1), Error::not_found).done(get({1, 1, 1, 1})).possible())
      << "pools have nothing to do with each other";
  const auto cut_off = [] { return with_value().interrupted(remove()); };
  EXPECT_TRUE(cut_off().done(open()).done(get({1, 1, 1, 1})).possible());
  EXPECT_TRUE(cut_off().failed(open(), Error::not_found).possible());
  EXPECT_FALSE(cut_off().done(open()).failed(get({}), Error::not_found).possible())
      << "there, but empty";
}

}  // namespace
}  // namespace perdura::services::test
