// What the clients of a key-value system do in a history in which failures are tried.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "platform/base/units.h"
#include "platform/pmem/model/choices.h"
#include "services/kv/history/history.h"

namespace perdura::services {

struct KvStep {
  history::Kind kind = history::Kind::get;
  std::uint64_t key = 0;
};

// A client between two failures.
struct KvClientPlan {
  std::vector<KvStep> steps;
  Picoseconds pause{};  // after each step
  Picoseconds late{};   // each of its fabric operations is delayed by this
  // Instead of the steps, gets key 0 until the late clients have ended.
  bool watches = false;
};

struct KvCrashPlan {
  std::uint64_t keys = 0;
  std::uint64_t writes = 0;  // at most, of all clients together
  // The lengths of values, used in turn by the puts of a client. Longer ones than the system
  // supports are cut.
  std::vector<Bytes> lengths;
  // By client, then by the number of failures before it: a client connects again after each.
  std::vector<std::vector<KvClientPlan>> clients;
};

// Two clients that put, update, delete and get all keys.
KvCrashPlan equal_writers_plan(std::uint64_t seed);
// One client does what a reader may see too early: it creates, updates and deletes a key, and
// creates it again in the place of the deleted one. Each of its operations is late; the other
// client only gets.
KvCrashPlan slow_writer_plan();
// One to three clients of different speeds that read and write a few keys, before the first failure
// and after each of `failures`. A choice of 0 is the simplest: one client, no operation, no delay.
KvCrashPlan generated_plan(pmem::Choices& choices, std::uint32_t failures);

}  // namespace perdura::services
