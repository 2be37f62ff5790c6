// The messages between the two sides of the log by RPC.
//
// A request is a record: a RecordHeader and the payload. It is SENT to the server, or WRITTEN to a
// buffer that the server polls. Then it has a checksum, since the lines of a WRITE are placed in
// any order. The answer is the number of the record, which is durable.
#pragma once

#include <cstdint>

#include "platform/fabric/types.h"
#include "systems/remote_log/log_format.h"
#include "systems/rpc_log/local_log.h"

namespace perdura::systems::rpc_log {

struct Options {
  LocalLogOptions log{};
  bool polls = false;  // the server polls a buffer for requests, as that of HERD

  std::uint32_t request_size() const {
    return static_cast<std::uint32_t>(sizeof(remote_log::RecordHeader)) + log.largest_payload;
  }
};

// The client's greeting, and the server's answer.
struct Hello {
  std::uint64_t slots = 0;
  std::uint32_t largest_payload = 0;
  std::uint32_t polls = 0;

  static Hello of(const Options& options) {
    return {options.log.slots, options.log.largest_payload, options.polls ? 1U : 0U};
  }
  friend bool operator==(const Hello&, const Hello&) = default;
};
struct Welcome {
  std::uint64_t tail = 0;      // the number of the last record
  fabric::RemoteKey requests;  // the buffer that the server polls
};
struct Rejection {
  std::uint32_t is_busy = 0;  // with another client; else the options differ
  Hello server;
};
struct Answer {
  std::uint64_t number = 0;
};

}  // namespace perdura::systems::rpc_log
