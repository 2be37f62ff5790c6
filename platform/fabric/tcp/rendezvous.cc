#include "platform/fabric/tcp/rendezvous.h"

#include <fmt/format.h>

#include "platform/base/error.h"

namespace perdura::fabric::tcp {

void Rendezvous::claim(Address address) {
  const std::scoped_lock lock(mutex_);
  if (!claimed_.emplace(address.node, address.port).second) {
    throw UsageError(fmt::format("two threads of node {} have port {} for connections over TCP",
                                 address.node, address.port));
  }
}

void Rendezvous::release(Address address) {
  const std::scoped_lock lock(mutex_);
  claimed_.erase({address.node, address.port});
}

}  // namespace perdura::fabric::tcp
