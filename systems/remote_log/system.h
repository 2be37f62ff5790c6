// RemoteLog as a system of the service `log`: "Correct, Fast Remote Persistence", Kashyap, Marathe,
// Qin, Byan, Min; section 4.1.
#pragma once

#include "services/log/log.h"
#include "systems/remote_log/log_format.h"

namespace perdura::systems {

extern const services::LogSystem kRemoteLog;

namespace remote_log {

// The two sides of a log with all its options, for callers that choose more than LogConfig has.
// `collect` is the interval at which the server looks for records to apply.
std::unique_ptr<services::LogStore> open_store(Thread& thread, const std::string& name,
                                               const LogOptions& options, Picoseconds collect,
                                               services::ApplyRecord apply);
Task<std::unique_ptr<services::LogWriter>> connect_writer(Thread& thread, fabric::Address server,
                                                          LogOptions options);

}  // namespace remote_log
}  // namespace perdura::systems
