// What the library chooses and is told, in the suite's own terms.
#pragma once

#include <chrono>

#include "library/perdura.h"
#include "persistence/chooser.h"
#include "platform/shm/shm_platform.h"
#include "systems/remote_log/log_format.h"

namespace perdura::library {

// Throws Refused, std::invalid_argument.
persistence::Advice advise(const Configuration& configuration, const Update& update);
// The same for client and server, given the same options. Throws Refused, std::invalid_argument.
bench::LogOptions log_options(const LogOptions& options);

// The platform of one of the two. Throws std::invalid_argument if the server's directory is not
// there, or is not persistent memory and need be.
ShmOptions shm_options(const LogOptions& options, std::uint32_t node);

// In which options the log, or the side of the log, at `where` ("at the server") differs from this
// one, each by its name in LogOptions.
std::string differing_options(const bench::LogDiffers& problem, const bench::LogOptions& here,
                              std::string_view where);

// A limit that may be as long as the clock's.
Picoseconds picoseconds(std::chrono::milliseconds limit);

// When a call's limit is over; nothing if never.
using Deadline = std::optional<std::chrono::steady_clock::time_point>;
Deadline deadline_after(std::chrono::milliseconds limit);

inline constexpr std::uint32_t kServer = 0;
inline constexpr std::uint32_t kClient = 1;
inline constexpr std::uint16_t kPort = 0;
inline constexpr const char* kRegion = "log";

}  // namespace perdura::library
