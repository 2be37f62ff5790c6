// The memory footprint of the two baselines, which share one estimate: both have a log for each
// partition, from which records are moved.
#pragma once

#include "services/footprint.h"

namespace perdura::systems::write_ahead {

inline constexpr services::Footprint kFootprint{.process = 23'200'000,
                                                .worker = 909'000,
                                                .log_items = 125,
                                                .client = 16'900,
                                                .session = 19'100,
                                                .operation = 6'830,
                                                .buffer_items = 1.33,
                                                .lane = 2'340,
                                                .lane_items = 4.7,
                                                .waiting = 2'820,
                                                .record = 210,
                                                .record_items = 1.7,
                                                .write = 0,
                                                .write_items = 0};

}  // namespace perdura::systems::write_ahead
