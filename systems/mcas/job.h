// A request while a shard executes it, and the session that it belongs to.
#pragma once

#include <tl/expected.hpp>

#include <cstdint>
#include <memory>
#include <vector>

#include "platform/fabric/fabric.h"
#include "systems/mcas/parsed_request.h"
#include "systems/mcas/pools.h"

namespace perdura::systems::mcas {

// A handle by which a session reaches a pool that it has opened. Its low bits are its index in
// ShardSession::handles.
struct OpenHandle {
  PoolHandle handle = kNoPool;  // kNoPool: closed
  Pool* pool = nullptr;
  bool read_only = false;
};

// A client's connection, on the shard's side.
struct ShardSession {
  std::uint32_t number = 0;
  std::unique_ptr<fabric::ReceiveQueue> requests;
  std::unique_ptr<fabric::QueuePair> queue_pair;
  std::vector<OpenHandle> handles;
  std::uint32_t tasks = 0;  // tasks, and requests taken, that use its buffers and connection
  bool ended = false;       // given up as soon as `tasks` is 0
  bool is_free() const { return queue_pair == nullptr; }
};

// A request, in the buffer in which it arrived.
struct Job {
  ShardSession* session = nullptr;
  std::uint64_t buffer = 0;
  ParsedRequest request;
  Pool* pool = nullptr;  // the pool of its handle, if it has one
};

// The reason of a failure: an error and the length of the text in the reply buffer that explains
// it.
struct Failed {
  objects::Error error;
  Bytes reason = 0;

  Failed(objects::Error what, Bytes text = 0) : error(what), reason(text) {}
};
// The result of a request: the length of the value in the reply buffer, or a failure.
using JobOutcome = tl::expected<Bytes, Failed>;

}  // namespace perdura::systems::mcas
