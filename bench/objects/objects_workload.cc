#include "bench/objects/objects_workload.h"

#include <algorithm>
#include <string>

namespace perdura::bench {

namespace {

constexpr std::uint64_t kMixed = kObjectWorkloads.size() - 1;

std::uint64_t word_of(const harness::PointSettings& settings) {
  const auto found =
      std::find(kObjectWorkloads.begin(), kObjectWorkloads.end(), settings.text("workload"));
  return static_cast<std::uint64_t>(found - kObjectWorkloads.begin());
}

}  // namespace

harness::OperationKind kind_of(ObjectOperation operation) {
  const auto number = static_cast<std::uint32_t>(operation);
  return {number, std::string(kObjectWorkloads[number])};
}

bool is_of_part(ObjectOperation operation) {
  return operation == ObjectOperation::put_direct_offset ||
         operation == ObjectOperation::get_direct_offset;
}

bool moves_directly(const harness::PointSettings& settings) {
  const std::uint64_t word = word_of(settings);
  return word >= static_cast<std::uint64_t>(ObjectOperation::put_direct) &&
         word <= static_cast<std::uint64_t>(ObjectOperation::get_direct_offset);
}

bool pool_is_shared(const harness::PointSettings& settings) {
  return settings.text("pool") == "shared";
}

std::uint32_t object_clients(const harness::PointSettings& settings) {
  return static_cast<std::uint32_t>(settings.number("server_threads") *
                                    settings.number("clients_per_shard"));
}

ObjectWorkload::ObjectWorkload(const harness::Point& point, std::uint32_t client)
    : random_(point.seed, client),
      word_(word_of(point.settings)),
      records_(point.settings.number("records")),
      part_size_(point.settings.number("part_size")),
      parts_(std::max<std::uint64_t>(point.settings.number("value_size") / part_size_, 1)) {
  const std::uint64_t clients = point.settings.number("clients_per_shard");
  const bool shared = pool_is_shared(point.settings);
  first_ = shared ? client % clients : 0;
  step_ = shared ? clients : 1;
  own_records_ = first_ < records_ ? (records_ - first_ + step_ - 1) / step_ : 0;
}

bool ObjectWorkload::uses(ObjectOperation operation) const {
  if (word_ != kMixed) return word_ == static_cast<std::uint64_t>(operation);
  return operation == ObjectOperation::put || operation == ObjectOperation::get;
}

ObjectWorkload::Step ObjectWorkload::next() {
  Step step;
  step.operation = word_ != kMixed                 ? static_cast<ObjectOperation>(word_)
                   : random_.uniform_below(2) == 0 ? ObjectOperation::put
                                                   : ObjectOperation::get;
  step.record = step.operation == ObjectOperation::erase ? own_record(erased_++)
                                                         : random_.uniform_below(records_);
  if (is_of_part(step.operation)) step.offset = random_.uniform_below(parts_) * part_size_;
  return step;
}

}  // namespace perdura::bench
