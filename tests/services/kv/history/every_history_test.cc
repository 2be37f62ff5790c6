// Every history of one key with up to five operations of three clients, every one of up to four
// with a power failure, and every one with a power failure that consists of up to four changes and
// a get behind them: the checker of keys, the search of any specification, and trying all orders
// agree. PERDURA_TEST_OPERATIONS=6 tries one operation more, which takes some minutes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "services/kv/history/checker.h"
#include "services/kv/history/specification.h"
#include "tests/services/kv/history/brute_force.h"

namespace perdura::history::test {
namespace {

constexpr std::size_t kClients = 3;

std::size_t most_operations() {
  const char* const given = std::getenv("PERDURA_TEST_OPERATIONS");
  return given == nullptr ? 5 : std::stoul(given);
}

// Which operations of three clients overlap. Histories in which the same ones do differ in nothing
// that matters, so time runs in steps: at each some operations begin, and then some end. Since
// only an end before a start orders two operations, an end is never followed by another step
// without a start. Of the idle clients, the first one begins: which one it is does not matter.
class Overlaps {
 public:
  using Take = std::function<void(const std::vector<Operation>&, Time now)>;

  Overlaps(std::size_t operations, const Take& take) : most_(operations), take_(take) { begin(); }

 private:
  // Some of the idle clients begin an operation.
  void begin() {
    now_ += Picoseconds(2);
    const std::size_t before = operations_.size();
    while (operations_.size() < most_ && busy() < kClients) {
      start_one();
      end();
    }
    while (operations_.size() > before) take_back();
    now_ -= Picoseconds(2);
  }

  // Those that are under way go on to the end of the history, or some of them end now.
  void end() {
    if (operations_.size() == most_) return take_(operations_, now_);
    std::vector<std::size_t> open;
    for (const std::size_t operation : of_client_) {
      if (operation != kIdle) open.push_back(operation);
    }
    for (std::size_t some = 1; some < std::size_t{1} << open.size(); ++some) {
      const auto clients = of_client_;
      for (std::size_t i = 0; i < open.size(); ++i) {
        if ((some >> i & 1) != 0) end_one(open[i]);
      }
      begin();
      of_client_ = clients;
      for (std::size_t i = 0; i < open.size(); ++i) operations_[open[i]].end = Time::max();
    }
  }

  void start_one() {
    std::size_t client = 0;
    while (of_client_[client] != kIdle) ++client;
    of_client_[client] = operations_.size();
    operations_.push_back({.key = 1,
                           .start = now_,
                           .end = Time::max(),
                           .client = static_cast<std::uint32_t>(client)});
  }
  void take_back() {
    of_client_[operations_.back().client] = kIdle;
    operations_.pop_back();
  }
  void end_one(std::size_t operation) {
    operations_[operation].end = now_ + Picoseconds(1);
    of_client_[operations_[operation].client] = kIdle;
  }
  std::size_t busy() const {
    return kClients -
           static_cast<std::size_t>(std::count(of_client_.begin(), of_client_.end(), kIdle));
  }

  static constexpr std::size_t kIdle = ~std::size_t{0};
  std::size_t most_;
  const Take& take_;
  std::vector<Operation> operations_;
  std::array<std::size_t, kClients> of_client_{kIdle, kIdle, kIdle};
  Time now_{};
};

// All that the operations may be, of these kinds, and answer. A put writes its own number; a get
// returns what some put of the history writes, or finds nothing.
class Answers {
 public:
  using Take = std::function<void(const std::vector<Operation>&)>;

  Answers(std::vector<Operation> operations, Time last, std::vector<Kind> kinds, const Take& take)
      : operations_(std::move(operations)), last_(last), kinds_(std::move(kinds)), take_(take) {
    choose_kind(0);
  }

 private:
  void choose_kind(std::size_t i) {
    if (i == operations_.size()) return choose_answer(0);
    for (const Kind kind : kinds_) {
      operations_[i].kind = kind;
      operations_[i].version = kind == Kind::put ? i + 1 : 0;
      choose_kind(i + 1);
    }
  }

  void choose_answer(std::size_t i) {
    if (i == operations_.size()) return take_(operations_);
    Operation& operation = operations_[i];
    const bool open = operation.end == Time::max();
    if (open && operation.kind != Kind::get) {
      operation.outcome = Outcome::unknown;
      choose_answer(i + 1);
    }
    if (open) operation.end = last_ + Picoseconds(1);
    operation.outcome = Outcome::ok;
    if (operation.kind != Kind::get) {
      choose_answer(i + 1);
    } else {
      for (const Operation& put : operations_) {
        if (put.kind != Kind::put) continue;
        operation.version = put.version;
        choose_answer(i + 1);
      }
      operation.version = 0;
    }
    if (operation.kind != Kind::put) {
      operation.outcome = Outcome::not_found;
      choose_answer(i + 1);
    }
    if (open) operation.end = Time::max();
  }

  std::vector<Operation> operations_;
  Time last_;
  std::vector<Kind> kinds_;
  const Take& take_;
};

const std::vector<Kind> kAllKinds{Kind::get, Kind::put, Kind::erase};

class Agreement {
 public:
  // Whether the three agree; if not, says so once.
  void compare(const std::vector<Operation>& operations, std::span<const Time> failures,
               Promise promise) {
    History history(operations);
    for (const Time failure : failures) history.add_power_failure(failure);
    const bool expected = BruteForce(operations, failures, promise).linearizable();
    const CheckResult of_keys = check(history, promise);
    const services::KeySpecification key{.promise = promise};
    const auto calls = services::calls_of(history);
    const auto of_any = check_linearizability(key, std::span(calls), failures);
    ++histories_;
    accepted_ += expected ? 1 : 0;
    if (of_keys.accepted() == expected && of_any.accepted() == expected) return;
    if (disagreements_++ > 0) return;
    std::string text;
    for (const Operation& operation : operations) text += describe(operation) + "\n";
    for (const Time failure : failures) {
      text +=
          fmt::format("power failure at {:.3f} us\n", to_microseconds(failure.time_since_epoch()));
    }
    ADD_FAILURE() << text << "all orders: " << expected << ", keys: " << of_keys.accepted()
                  << ", any: " << of_any.accepted();
  }

  std::uint64_t histories() const { return histories_; }
  std::uint64_t accepted() const { return accepted_; }

 private:
  std::uint64_t histories_ = 0;
  std::uint64_t accepted_ = 0;
  std::uint64_t disagreements_ = 0;
};

class EveryHistory : public testing::Test {
 protected:
  void TearDown() override {
    fmt::print("{} histories, of which {} are linearizable\n", agreement_.histories(),
               agreement_.accepted());
    EXPECT_GT(agreement_.accepted(), 0U);
    EXPECT_LT(agreement_.accepted(), agreement_.histories());
  }

  Agreement agreement_;
};

TEST_F(EveryHistory, OfSomeOperations) {
  for (std::size_t operations = 1; operations <= most_operations(); ++operations) {
    Overlaps(operations, [&](const std::vector<Operation>& overlapping, Time last) {
      Answers(overlapping, last, kAllKinds, [&](const std::vector<Operation>& answered) {
        agreement_.compare(answered, {}, {});
      });
    });
  }
}

// The failure may be before and after all, and between any two moments.
TEST_F(EveryHistory, WithAPowerFailure) {
  for (std::size_t operations = 1; operations < most_operations(); ++operations) {
    Overlaps(operations, [&](const std::vector<Operation>& overlapping, Time last) {
      Answers(overlapping, last, kAllKinds, [&](const std::vector<Operation>& answered) {
        for (Time failure = Time(Picoseconds(1)); failure <= last + Picoseconds(2);
             failure += Picoseconds(1)) {
          for (const auto undone : {Promise::Undone::nothing, Promise::Undone::last_version}) {
            agreement_.compare(answered, std::array{failure}, {.undone = undone});
          }
        }
      });
    });
  }
}

// The same history with no two events at the same time: what begins or ends in one step does so in
// the order of the operations, ends also in the other one. The verdict is the same, but not the way
// to it.
std::vector<Operation> apart(std::vector<Operation> operations, bool last_ends_first) {
  const auto count = static_cast<std::int64_t>(operations.size());
  const auto at = [&](Time step, std::int64_t place) {
    return Time(Microseconds(step.time_since_epoch().count() * count + place));
  };
  for (std::int64_t i = 0; i < count; ++i) {
    Operation& operation = operations[static_cast<std::size_t>(i)];
    operation.start = at(operation.start, i);
    if (operation.end == Time::max()) continue;
    operation.end = at(operation.end, last_ends_first ? count - 1 - i : i);
  }
  return operations;
}

// What an exploration sees: changes, of which a power failure may undo the last one, and at the end
// what is found.
TEST_F(EveryHistory, OfChangesAndAGetBehindThemWithAPowerFailure) {
  constexpr Promise kPromise{.undone = Promise::Undone::last_version};
  for (std::size_t changes = 1; changes < most_operations(); ++changes) {
    Overlaps(changes, [&](const std::vector<Operation>& overlapping, Time last) {
      const Operation get{.key = 1,
                          .start = last + Picoseconds(3),
                          .end = last + Picoseconds(4),
                          .client = kClients};
      const auto compare = [&](const std::vector<Operation>& all) {
        const auto count = static_cast<std::int64_t>(all.size());
        for (Time failure = Time(Picoseconds(1)); failure <= get.end + Picoseconds(2);
             failure += Picoseconds(1)) {
          const Time between(Microseconds(failure.time_since_epoch().count() * count - 1));
          for (const bool last_ends_first : {false, true}) {
            agreement_.compare(apart(all, last_ends_first), std::array{between}, kPromise);
          }
        }
      };
      Answers(overlapping, last, {Kind::put, Kind::erase}, [&](const std::vector<Operation>& made) {
        std::vector<Operation> all = made;
        all.push_back(get);
        all.back().outcome = Outcome::not_found;
        compare(all);
        all.back().outcome = Outcome::ok;
        for (const Operation& put : made) {
          if (put.kind != Kind::put) continue;
          all.back().version = put.version;
          compare(all);
        }
      });
    });
  }
}

}  // namespace
}  // namespace perdura::history::test
