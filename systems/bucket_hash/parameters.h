// The checks of configurations that the hash indexes share. They throw UsageError.
#pragma once

#include <cstdint>
#include <string_view>

#include "services/kv/kv.h"
#include "systems/parameter_reader.h"

namespace perdura::systems::bucket_hash {

// That fixed slots take the keys and values, and what else every index has limits for.
void require_slots(const ParameterReader& given, const KvConfig& config);

// That the last of the tables, each of twice the buckets of the one before, can be addressed.
// `what` is the parameter of `system` that `buckets` comes from.
void require_tables(std::string_view system, std::string_view what, std::uint64_t buckets,
                    std::uint64_t resizes);

}  // namespace perdura::systems::bucket_hash
