// Makes an update persistent on a queue pair of the program's own: follows the requester's steps of
// a method that choose() returned. The connection, the memory and the responder's program are the
// caller's.
//
//   const auto responder = perdura::responder_from_json(text);   // made there, sent by any means
//   const auto method = perdura::choose(responder, {.size = 512}, perdura::persist_features());
//   perdura::persist(queue_pair, memory, {.local = record, .length = 512, .address = a, .rkey = k},
//                    method.front(), {.landing = word});
//
// A method in which the responder takes part has steps of the other agent, too: its program does
// them for each message that arrives (Choice::steps, Agent::responder).
#pragma once

#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "perdura.h"

namespace perdura {

// Bytes of registered memory of this side, and where they go.
struct RemoteRange {
  const void* local = nullptr;
  std::uint32_t length = 0;
  std::uint64_t address = 0;    // at the responder; of a SEND, any that a READ may name
  std::uint32_t rkey = 0;       // of its memory region
  std::uint32_t immediate = 0;  // of a WRITE_WITH_IMM: what tells the responder's program the place
};

// A message of the program's own: what it says is between the two programs.
struct LocalRange {
  const void* local = nullptr;
  std::uint32_t length = 0;
};

struct PersistOptions {
  std::optional<RemoteRange> second{};  // of two ordered updates: "b"
  // SENDs that name an update that has been written ("send &a", "send &b").
  std::optional<LocalRange> names_first{};
  std::optional<LocalRange> names_second{};
  // 8 bytes of the memory region, registered with IBV_ACCESS_LOCAL_WRITE, which READs overwrite.
  std::uint64_t* landing = nullptr;
  // Asked again and again until it is true: whether the responder's next acknowledgment has come.
  std::function<bool()> acknowledged{};
  // Is given completions of the send queue's completion queue that are not this call's; without it
  // they are an error.
  std::function<void(const ibv_wc&)> other{};
  std::chrono::milliseconds timeout{10'000};  // zero waits for nothing, max() for ever
  // The upper 16 bits of the wr_ids of this call's work requests.
  std::uint16_t wr_id_prefix = 0x5044;
};

// What persist() can post beyond WRITE, SEND and READ. rdma-core posts FLUSH and ATOMIC WRITE since
// version 49 and by other calls; READ takes the place of FLUSH until they are used here.
Features persist_features();

// When it returns, the requester may rely on the update, if the method is right for the responder.
// The memory region holds all local ranges; the queue pair is a reliable connection ready to send,
// with room for six work requests, and used by nobody else meanwhile.
//
// Throws std::invalid_argument, before anything is posted, if the method needs what is not given;
// TimedOut, in doubt, if the time is over; std::runtime_error if the queue pair does not take a
// work request or one fails.
void persist(ibv_qp* queue_pair, const ibv_mr* memory, const RemoteRange& range,
             const Choice& method, const PersistOptions& options = {});

}  // namespace perdura
