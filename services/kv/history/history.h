// The operations of the clients of a key-value system, and their answers: the input of the checker
// (checker.h), written by recorders (recorder.h) or by hand.
//
// All times of a history must be of one clock, since the checker infers order from "ended before
// the other began". On `sim` that is virtual time, on `shm` the host's CLOCK_MONOTONIC since the
// start of the job, which is the same for all its processes. Clients on several hosts have
// different clocks. Their histories may be merged only if the clocks differ by less than the
// shortest time between an operation's start and its effect, or between its effect and its end.
// Otherwise concurrent operations may appear ordered, and the checker may reject a correct system.
//
// Times that are equal count as concurrent.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "platform/base/units.h"

namespace perdura::history {

enum class Kind : std::uint8_t { get, put, erase };

enum class Outcome : std::uint8_t {
  ok,         // a get that yielded `version`; a put or erase that was acknowledged
  not_found,  // a get or erase whose key is absent; changes nothing
  unknown,    // no answer: a put or erase may take effect at any time after its start, or never
  refused,    // no effect, and no information: out of space, or too large
  torn,       // a get that yielded a value that no put of this key can have written
};

std::string_view to_string(Kind kind);
std::string_view to_string(Outcome outcome);

struct Operation {
  std::uint64_t key = 0;      // identifies the key
  std::uint64_t version = 0;  // written or read; should be unique among the puts of a key
  Time start{};
  Time end = Time::max();  // ignored if the outcome is unknown
  std::uint32_t client = 0;
  Kind kind = Kind::get;
  Outcome outcome = Outcome::unknown;

  friend bool operator==(const Operation&, const Operation&) = default;
};
static_assert(sizeof(Operation) <= 48);

// "put of version 5 by client 2, 10.250 to 12.000 us".
std::string describe(const Operation& operation);

// Operations in any order, power failures, and initial contents of keys. By default keys are absent
// at first.
class History {
 public:
  History() = default;
  explicit History(std::vector<Operation> operations) : operations_(std::move(operations)) {}

  void reserve(std::size_t operations) { operations_.reserve(operations); }
  void add(const Operation& operation) { operations_.push_back(operation); }
  void add(std::span<const Operation> operations);

  // The power of the whole server failed at this time. The promise determines what that may undo.
  void add_power_failure(Time when) { power_failures_.push_back(when); }

  // The keys first, first + 1, ... initially hold `version`, which no recorded put may write.
  struct Preload {
    std::uint64_t first = 0;
    std::uint64_t keys = 0;
    std::uint64_t version = 0;
  };
  void add_preload(const Preload& preload) { preloads_.push_back(preload); }

  // Adds everything of another history, whose times must be of the same clock.
  void merge(const History& other);

  std::size_t size() const { return operations_.size(); }
  std::span<const Operation> operations() const { return operations_; }
  std::span<const Time> power_failures() const { return power_failures_; }
  std::span<const Preload> preloads() const { return preloads_; }

 private:
  std::vector<Operation> operations_;
  std::vector<Time> power_failures_;
  std::vector<Preload> preloads_;
};

}  // namespace perdura::history
