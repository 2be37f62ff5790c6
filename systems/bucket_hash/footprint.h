// The memory footprint of the three hash indexes, which share one estimate: their values are small,
// and all server threads share one table.
#pragma once

#include "services/footprint.h"

namespace perdura::systems::bucket_hash {

inline constexpr services::Footprint kFootprint{.process = 19'500'000,
                                                .worker = 14'000,
                                                .log_items = 0,
                                                .client = 31'300,
                                                .session = 0,
                                                .operation = 2'590,
                                                .buffer_items = 28.1,
                                                .lane = 1'060,
                                                .lane_items = 0,
                                                .waiting = 5'570,
                                                .record = 129,
                                                .record_items = 0,
                                                .write = 0,
                                                .write_items = 0};

}  // namespace perdura::systems::bucket_hash
