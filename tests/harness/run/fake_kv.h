// A key-value system without a network, for tests of what drives systems: the partition is a map
// that sessions look into, an operation takes a microsecond, and every put stores its value once in
// persistent memory. Its parameters make it misbehave:
//
//   capacity        records that fit; none is refused
//   garble_every    each n-th get returns a damaged value
//   lose_every      each n-th get finds nothing
//   refuse_open     open() throws UsageError
//   refuse_connect  connect() throws PlatformError
//   corrupt_every   each n-th get ends with Error::corrupt
//   drop_every      each n-th put is acknowledged and forgotten, unless it creates its record
//   space           capacity that it reports; free, it says, are as many bytes as it has records
#pragma once

#include "services/kv/kv.h"

namespace perdura::test {

extern const kv::KvSystem kFakeKv;

// Partitions that exist now, and sessions opened so far: for tests of the driver's order.
struct FakeCounts {
  int partitions_alive = 0;
  int sessions_alive = 0;
  int sessions_opened = 0;
  int settled = 0;
};
FakeCounts& fake_counts();

}  // namespace perdura::test
