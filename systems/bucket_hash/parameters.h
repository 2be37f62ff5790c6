// The checks of parameters that the hash indexes share. `system` is the system's name.
#pragma once

#include <cstdint>
#include <string_view>

#include "systems/kv.h"

namespace perdura::systems::bucket_hash {

// Throws UsageError unless the value is one of these.
void require_within(std::string_view system, std::string_view what, std::uint64_t value,
                    std::uint64_t least, std::uint64_t most);

// That fixed slots take the keys and values, and what else every index has limits for. Throws
// UsageError.
void require_slots(std::string_view system, const KvConfig& config);

// That the last of the tables, each of twice the buckets of the one before, can be addressed.
// `what` is the parameter that `buckets` comes from. Throws UsageError.
void require_tables(std::string_view system, std::string_view what, std::uint64_t buckets,
                    std::uint64_t resizes);

}  // namespace perdura::systems::bucket_hash
