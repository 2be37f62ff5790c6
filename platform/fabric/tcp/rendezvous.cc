#include "platform/fabric/tcp/rendezvous.h"

#include <fmt/format.h>
#include <sys/random.h>

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

ListenerSocket Rendezvous::begin_to_listen(Address /*address*/) {
  ListenerSocket listening{listen_on(host())};
  if (::getrandom(&listening.token, sizeof listening.token, 0) != sizeof listening.token) {
    throw PlatformError("connections over TCP: cannot get a random number");
  }
  return listening;
}

}  // namespace perdura::fabric::tcp
