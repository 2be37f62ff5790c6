// The checks of configurations that the hash indexes share. They throw UsageError.
#pragma once

#include <cstdint>
#include <string_view>

#include "services/kv/kv.h"
#include "systems/parameter_reader.h"

namespace perdura::systems::bucket_hash {

// Requires that keys and values fit the fixed slots, and checks the other limits that all indexes
// share.
void require_slots(const ParameterReader& given, const kv::KvConfig& config);

// Requires that the last table can be addressed after all resizes, each of which doubles the number
// of buckets. `what` is the parameter of `system` that `buckets` comes from.
void require_tables(std::string_view system, std::string_view what, std::uint64_t buckets,
                    std::uint64_t resizes);

}  // namespace perdura::systems::bucket_hash
