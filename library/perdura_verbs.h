// Makes an update persistent through a queue pair of the caller's: executes the requester's steps
// of a method that choose() returned. The caller provides the connection, the memory and the
// responder's program.
//
//   const auto responder = perdura::responder_from_json(text);   // from there, sent by any means
//   const auto method = perdura::choose(responder, {.size = 512}, perdura::persist_features());
//   perdura::persist(queue_pair, memory, {.local = record, .length = 512, .address = a, .rkey = k},
//                    method.front(), {.landing = word});
//
// A method in which the responder takes part also has responder steps; the responder's program must
// execute them for each message that arrives (Choice::steps, Agent::responder).
#pragma once

#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "perdura.h"

namespace perdura {

// A range of this side's registered memory, and its destination at the responder.
struct RemoteRange {
  const void* local = nullptr;
  std::uint32_t length = 0;
  std::uint64_t address = 0;  // at the responder; for a SEND, any address that a READ may access
  std::uint32_t rkey = 0;     // remote key of the responder's memory region
  // For a WRITE_WITH_IMM: tells the responder's program which update it is.
  std::uint32_t immediate = 0;
};

// A message whose contents the requester's and the responder's programs define.
struct LocalRange {
  const void* local = nullptr;
  std::uint32_t length = 0;
};

struct PersistOptions {
  std::optional<RemoteRange> second{};  // the second of two ordered updates, "b"
  // Messages of the SENDs that name an update already written ("send &a", "send &b").
  std::optional<LocalRange> names_first{};
  std::optional<LocalRange> names_second{};
  // A scratch word for READs: 8 bytes of the memory region, which must be registered with
  // IBV_ACCESS_LOCAL_WRITE.
  std::uint64_t* landing = nullptr;
  // Polled until it returns true, which means that the responder's next acknowledgment has arrived.
  std::function<bool()> acknowledged{};
  // Called with completions on the send queue's completion queue that do not belong to this call;
  // without it, such completions are an error.
  std::function<void(const ibv_wc&)> other{};
  std::chrono::milliseconds timeout{10'000};  // zero: does not wait; max(): no limit
  // The upper 16 bits of the wr_ids of this call's work requests.
  std::uint16_t wr_id_prefix = 0x5044;
};

// The operations that persist() can post besides WRITE, SEND and READ. rdma-core can post FLUSH and
// ATOMIC WRITE since version 49, by other calls that persist() does not use yet; READ takes the
// place of FLUSH until then.
Features persist_features();

// When it returns, the update is persistent, provided that the method is correct for the responder.
// For its writer that is the level `durable-writes` of docs/guarantees.md; it is `durable` if no
// one reads the update earlier.
// The memory region must contain all local ranges. The queue pair must be a reliable connection in
// the state ready-to-send, with room for six work requests, and must not be used by others during
// the call.
//
// Throws std::invalid_argument, before anything is posted, if an argument that the method needs is
// missing; TimedOut, with in_doubt() true, if the limit expires; std::runtime_error if the queue
// pair rejects a work request or a work request fails.
void persist(ibv_qp* queue_pair, const ibv_mr* memory, const RemoteRange& range,
             const Choice& method, const PersistOptions& options = {});

}  // namespace perdura
