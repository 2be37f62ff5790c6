// What a key-value store takes of a machine's memory where one process is all nodes of a point, so
// that `perdura plan` can say it before.
//
// Memory counts when it is touched: a store's pool is as large as its log may become, and the
// buffers of a session have room for all operations that may be under way, but most points use a
// part. So what is touched was measured, as the most that processes on sim had in memory, over one
// to 10,000 clients, one to 1,000 server threads, queues of one to 64, values of up to 4 KiB, up to
// 200,000 records and 400,000 operations, and fitted to what grows with each of these. The result
// is 1.1 to 1.9 times what was measured in every case (docs/performance.md, "Many clients").
#pragma once

#include "platform/base/units.h"

namespace perdura::services {

struct Footprint {
  Bytes process;
  Bytes worker;       // a server thread
  Bytes log_items;    // of a partition, that its log has room for
  Bytes client;       // its thread, its generator and its histograms
  Bytes session;      // both sides
  Bytes operation;    // of the first ones of a session, which touch other buffers each
  double used_items;  // of the operations that go once around a session's buffers
  Bytes lane;         // of a session, beyond the first
  double lane_items;  // of an operation that is under way
  Bytes waiting;      // an operation of a client beyond its first
  Bytes record;       // beside the key and the value
  double record_items;
  Bytes write;         // of a put that stays in a log: beside the key and the value
  double write_items;  // what is kept of each put, since the log is not cleaned before it is full
};

}  // namespace perdura::services
