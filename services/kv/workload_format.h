// How a recorder interprets the keys and values of workloads (bench/ycsb).
#pragma once

#include <vector>

#include "services/kv/key_format.h"
#include "services/kv/recorder.h"

namespace perdura::kv {

// Values must have at least 8 bytes, since shorter ones do not hold the whole version. Versions are
// below 2^32, since a history has fewer operations. A value of less than 16 bytes does not hold its
// key's number; a caller that knows that number, as clients do, must check that the value belongs
// to the key.
class WorkloadFormat final : public Format {
 public:
  static constexpr Bytes kLeastValueSize = 8;

  explicit WorkloadFormat(KeyFormat keys) : keys_(std::move(keys)), expected_key_(keys_.size()) {}

  // A hash of the key, since the key's number in the workload cannot be read from it. The
  // probability that two of n keys have the same hash is n^2 / 2^65: for a million keys 1 in 37
  // million.
  std::uint64_t key_number(Key key) override;
  std::optional<std::uint64_t> version(Key key, Value value) override;

  // Finds the key's number in the workload, which must be one of the `count` numbers from `first`
  // on, given key_number().
  std::optional<std::uint64_t> number_in_workload(std::uint64_t key_number, std::uint64_t first,
                                                  std::uint64_t count);

 private:
  KeyFormat keys_;
  std::vector<std::byte> expected_key_;
};

}  // namespace perdura::kv
