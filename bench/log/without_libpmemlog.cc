// Implements libpmemlog_target.h in a build without libpmemlog.
#include "bench/log/libpmemlog_target.h"
#include "platform/base/error.h"

namespace perdura::bench {

bool have_libpmemlog() { return false; }

std::unique_ptr<LogTarget> libpmemlog_target(const services::LogConfig&, const std::string&) {
  throw UsageError("this perdura was built without libpmemlog");
}

}  // namespace perdura::bench
