// The memory footprint of a key-value store when one process runs all nodes of a point, so that
// `perdura plan` can estimate it in advance.
//
// Only memory that is touched counts: a store's pool is as large as its log may become, and the
// buffers of a session have room for all operations that may be in flight, but most points use a
// part of that. The peak resident memory of processes on sim was measured, with one to 10,000
// clients, one to 1,000 server threads, queues of one to 64, values of up to 4 KiB, up to 200,000
// records and 400,000 operations, and the members below were fitted to how it grows with each of
// these. The result is 1.1 to 1.9 times what was measured in every case (docs/performance.md, "Many
// clients").
//
// A member whose name ends in `_items` is a multiple of the size of an item, which is that of a key
// and the longest value; the others are bytes.
#pragma once

#include "platform/base/units.h"

namespace perdura::services {

struct Footprint {
  Bytes process;
  Bytes worker;         // for each server thread
  Bytes log_items;      // for each partition, which touches all of its log
  Bytes client;         // for each client: its thread, generator and histograms
  Bytes session;        // for each session, both sides
  Bytes operation;      // for each of a session's first operations, which touch new buffers
  double buffer_items;  // for each operation that is the first in a buffer of its session
  Bytes lane;           // for each lane of a session but the first
  double lane_items;    // for each such lane, and for each operation in flight
  Bytes waiting;        // for each operation in flight of a client but the first
  Bytes record;         // for each record, besides its key and value
  double record_items;
  Bytes write;         // for each put that stays in a log, besides its key and value
  double write_items;  // for each put, since the log is not cleaned before it is full
};

}  // namespace perdura::services
