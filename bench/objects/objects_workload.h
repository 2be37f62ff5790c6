// The operations that the clients of a point repeat on the records of a pool (the parameter
// `workload`): one kind of operation, or puts and gets in equal parts.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "harness/run/point.h"
#include "platform/base/random.h"

namespace perdura::bench {

enum class ObjectOperation : std::uint8_t {
  put,
  get,
  erase,
  put_direct,
  get_direct,
  put_direct_offset,  // a part of the value, at a random multiple of the part's size
  get_direct_offset,
  invoke,
  invoke_put,
};
inline constexpr std::size_t kObjectOperations = 9;

// The names of the operations in experiments and results, and `mixed`.
inline constexpr std::array<std::string_view, kObjectOperations + 1> kObjectWorkloads{
    "put",
    "get",
    "erase",
    "put-direct",
    "get-direct",
    "put-direct-offset",
    "get-direct-offset",
    "invoke",
    "invoke-put",
    "mixed"};

// The kind under which results list the operation.
harness::OperationKind kind_of(ObjectOperation operation);

bool is_of_part(ObjectOperation operation);
// True if the shard READs and WRITEs the clients' memory, so that values need not fit into
// messages.
bool moves_directly(const harness::PointSettings& settings);

// The workload of one client.
class ObjectWorkload {
 public:
  ObjectWorkload(const harness::Point& point, std::uint32_t client);

  struct Step {
    ObjectOperation operation{};
    std::uint64_t record = 0;
    Bytes offset = 0;  // offset of the part
  };
  Step next();
  bool uses(ObjectOperation operation) const;

  // The records that this client loads and erases: all records if the pool is its own, or its share
  // of them if the clients of a shard have one pool together.
  std::uint64_t own_records() const { return own_records_; }
  std::uint64_t own_record(std::uint64_t number) const { return first_ + number * step_; }

 private:
  Random random_;
  std::uint64_t word_;  // index in kObjectWorkloads
  std::uint64_t records_;
  Bytes part_size_;
  std::uint64_t parts_;
  std::uint64_t first_;
  std::uint64_t step_;
  std::uint64_t own_records_;
  std::uint64_t erased_ = 0;
};

// True if the clients of a shard share one pool.
bool pool_is_shared(const harness::PointSettings& settings);
// The number of clients of all shards together.
std::uint32_t object_clients(const harness::PointSettings& settings);

}  // namespace perdura::bench
