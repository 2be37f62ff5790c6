// The log of libpmemlog, of the Persistent Memory Development Kit, in a file of this machine: the
// client appends to it by the library's functions. with_libpmemlog.cc implements it, and
// without_libpmemlog.cc in a build without the library.
#pragma once

#include <memory>
#include <string>

#include "bench/log/log_target.h"
#include "services/service.h"

namespace perdura::bench {

extern const services::SystemInfo kLibpmemlog;

bool have_libpmemlog();

// The log is a file in `directory`, which is removed with the writer. On tmpfs, which stands for
// persistent memory as the memory of platform shm does, the library is told to flush cache lines;
// else it finds out itself whether to do that or to call msync. Must be called before the point's
// threads start, since it sets a variable of the environment.
std::unique_ptr<LogTarget> libpmemlog_target(const services::LogConfig& config,
                                             const std::string& directory);

}  // namespace perdura::bench
