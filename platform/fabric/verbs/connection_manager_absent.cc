// Implementation for builds without librdmacm: every function reports that it is missing.
#include <fmt/format.h>

#include "platform/base/error.h"
#include "platform/fabric/verbs/connection_manager.h"

namespace perdura::fabric::verbs {
namespace {

constexpr const char* kAbsent =
    "an iWARP device, which this build cannot use; install librdmacm-dev and build again";

}  // namespace

std::unique_ptr<ConnectionManager> make_connection_manager(const Device& device) {
  throw PlatformError(fmt::format("platform verbs: {} is {}", device.name(), kAbsent));
}

PortAddresses addresses_of(const std::string&, unsigned) { return {{}, kAbsent}; }

}  // namespace perdura::fabric::verbs
