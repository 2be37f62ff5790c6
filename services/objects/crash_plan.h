// The operations of the clients of a store of pools in a history in which failures are tried.
#pragma once

#include <cstdint>
#include <vector>

#include "platform/base/units.h"
#include "platform/pmem/model/tape.h"
#include "services/objects/specification.h"

namespace perdura::services {

// A client first opens or creates the pool of a step unless it has done so. It closes a pool before
// it removes it; other clients may have that pool open.
struct ObjectsStep {
  ObjectsSpecification::Operation::Kind kind{};  // any but create and open
  std::size_t pool = 0;
  std::size_t key = 0;
  bool direct = false;
};

// A client's steps between two failures. A client without steps does not connect.
struct ObjectsClientPlan {
  std::vector<ObjectsStep> steps{};
  Picoseconds pause{};  // after each step
  Picoseconds late{};   // each of its fabric operations is delayed by this
};

struct ObjectsPlan {
  std::size_t pools = 1;
  std::size_t keys = 1;  // per pool
  // Lengths of values, longer than a word, which are used in turn.
  std::vector<Bytes> lengths{};
  // By client, then by the number of failures before: a client connects again after each failure.
  std::vector<std::vector<ObjectsClientPlan>> clients{};
  bool crowded = false;  // the shard may be full
  // If true, events() also counts the boundaries of lengths that runs must meet.
  bool is_generated = false;
};

// Two clients that put, write into parts of, get and erase the keys of one pool.
ObjectsPlan writers_plan(std::uint64_t seed);
// One client creates, fills and removes pools; the other one uses another pool meanwhile.
ObjectsPlan pools_plan();
// One to three clients. The streams of the tape: "store": the numbers of pools and keys, the
// lengths of values, and the amount of room; "lengths": whether values have lengths around
// boundaries instead; "client-0", "client-1", ...: each client's speed and steps. 0 is the simplest
// choice: one pool, one key, no step, no delay.
ObjectsPlan generated_objects_plan(pmem::Tape& tape, std::uint32_t failures);

}  // namespace perdura::services
