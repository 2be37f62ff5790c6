// Conversions of the library's configurations and options to the suite's own types.
#pragma once

#include <chrono>

#include "library/perdura.h"
#include "methods/chooser.h"
#include "platform/shm/shm_platform.h"
#include "systems/remote_log/log_format.h"

namespace perdura::library {

// Chooses the methods for an update. Throws Refused or std::invalid_argument.
methods::Advice advise(const Configuration& configuration, const Update& update);
// Throw std::invalid_argument if the argument cannot be the name of a job, or the directory of
// persistent memory: that must exist, be writable, and be on DAX unless `emulated`. `whose`: such
// as "the log's".
void check_job(const std::string& job);
void check_directory(const std::string& directory, bool emulated, std::string_view whose);

// The suite's options of a log. Client and server get the same result from the same options. Throws
// Refused or std::invalid_argument.
systems::remote_log::LogOptions log_options(const LogOptions& options);

// The platform options of the server (`node` = kServer) or the client (kClient). Throws
// std::invalid_argument if the server's directory does not exist, or is not persistent memory
// although it must be.
ShmOptions shm_options(const LogOptions& options, std::uint32_t node);

// A text that names the options, as in LogOptions, in which the log or the peer at `where` ("at the
// server") differs from this side.
std::string differing_options(const systems::remote_log::LogDiffers& problem,
                              const systems::remote_log::LogOptions& here, std::string_view where);

// Converts a limit to picoseconds, at most the longest that the type can hold.
Picoseconds picoseconds(std::chrono::milliseconds limit);

// The time at which a call's limit ends; nothing if the call has no limit.
using Deadline = std::optional<std::chrono::steady_clock::time_point>;
Deadline deadline_after(std::chrono::milliseconds limit);

inline constexpr std::uint32_t kServer = 0;
inline constexpr std::uint32_t kClient = 1;
inline constexpr std::uint16_t kPort = 0;
inline constexpr const char* kRegion = "log";

}  // namespace perdura::library
