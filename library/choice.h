// What the library chooses, in the suite's own terms.
#pragma once

#include "bench/log/log_format.h"
#include "library/perdura.h"
#include "platform/shm_platform.h"
#include "systems/persistence/chooser.h"

namespace perdura::library {

// Throws Refused.
persistence::Advice advise(const Configuration& configuration, const Update& update);
// The same for client and server, given the same options. Throws Refused.
bench::LogOptions log_options(const LogOptions& options);

// The platform of one of the two.
ShmOptions shm_options(const LogOptions& options, std::uint32_t node);

inline constexpr std::uint32_t kServer = 0;
inline constexpr std::uint32_t kClient = 1;
inline constexpr std::uint16_t kPort = 0;
inline constexpr const char* kRegion = "log";

}  // namespace perdura::library
