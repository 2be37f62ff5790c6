// The operations of the clients of a key-value system in a history in which failures are tried.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "platform/base/units.h"
#include "platform/pmem/model/tape.h"
#include "services/kv/history/history.h"

namespace perdura::services {

struct KvStep {
  history::Kind kind = history::Kind::get;
  std::uint64_t key = 0;
};

// The work of a client between two failures.
struct KvClientPlan {
  std::vector<KvStep> steps;
  Picoseconds pause{};   // after each step
  Picoseconds late{};    // each of its fabric operations is delayed by this
  bool at_once = false;  // begins all steps at once, instead of one after the other
  // Instead of doing the steps, gets key 0 until the late clients have ended.
  bool watches = false;
};

struct KvCrashPlan {
  std::uint64_t keys = 0;
  std::uint64_t writes = 0;  // the most that all clients together do
  // The lengths of values, used in turn by the puts of a client. Those that the system does not
  // support are reduced to its longest.
  std::vector<Bytes> lengths;
  // By client, then by the number of failures before it: a client connects again after each. A
  // client without operations does not connect.
  std::vector<std::vector<KvClientPlan>> clients{};
  // Reduced if the system does not support it. Entries with such keys may span two cache lines.
  Bytes key_size = 24;
  std::uint32_t servers = 1;  // each with a partition, unless the system spans several
  std::uint32_t workers = 1;  // threads of each server, if they can share a partition
  // The store is made for fewer keys than there are, so it may become full.
  bool crowded = false;
};

// Two clients that put, update, delete and get all keys.
KvCrashPlan equal_writers_plan(std::uint64_t seed);
// One client makes changes that a reader may see before they are durable: it creates, updates and
// deletes a key, and creates it again in the place of the deleted one. Each of its fabric
// operations is late; the other client only gets.
KvCrashPlan slow_writer_plan();
// One to three clients of different speeds that read and write some keys, before the first failure
// and after each of `failures`. Streams of the tape:
//
//   store                number of servers and keys, sizes of keys and values, free space; after
//                        that, which small store of the system
//   lengths              whether values have lengths around boundaries instead
//   workers              number of threads of each server
//   filling              whether the store holds other keys at the beginning, and clients get those
//   client-0, client-1.. each client's speed and operations
//
// 0 is the simplest choice: one client, one key, one server, no operation, no delay.
KvCrashPlan generated_plan(pmem::Tape& tape, std::uint32_t failures);

}  // namespace perdura::services
