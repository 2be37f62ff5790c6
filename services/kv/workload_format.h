// How a recorder reads the keys and values of workloads (harness/workload).
#pragma once

#include <vector>

#include "services/kv/key_format.h"
#include "services/kv/recorder.h"

namespace perdura::history {

// Values must have at least 8 bytes: shorter ones do not hold all of their version, which is less
// than 2^32, as there are not more operations in a history. A value of less than 16 bytes does not
// name its key: that it was written for it is checked by whoever knows the key's number, as clients
// do.
class WorkloadFormat final : public Format {
 public:
  static constexpr Bytes kLeastValueSize = 8;

  explicit WorkloadFormat(workload::KeyFormat keys)
      : keys_(std::move(keys)), expected_key_(keys_.size()) {}

  // A hash of the key, because its number in the workload cannot be read from it. Two of n keys
  // have the same with a probability of n^2 / 2^65: for a million keys 1 in 37 million.
  std::uint64_t key_number(systems::Key key) override;
  std::optional<std::uint64_t> version(systems::Key key, systems::Value value) override;

  // The key's number in the workload, among the first numbers, given key_number().
  std::optional<std::uint64_t> number_in_workload(std::uint64_t key_number, std::uint64_t first,
                                                  std::uint64_t count);

 private:
  workload::KeyFormat keys_;
  std::vector<std::byte> expected_key_;
};

}  // namespace perdura::history
