#include "systems/novad/client.h"

#include <fmt/format.h>

#include "platform/base/error.h"
#include "systems/novad/session.h"

namespace perdura::systems::novad {

Task<> FileSystem::begin(Thread& thread) {
  thread_ = &thread;
  Link link(thread, parameters_.server, 0);
  if (!co_await link.connected()) {
    throw PlatformError(
        fmt::format("cannot connect to the server of '{}' on node {}", name_, parameters_.server));
  }
  mount_ = link.welcome().mount;
}

std::unique_ptr<fs::Session> FileSystem::attach(Thread& thread) {
  return std::make_unique<Session>(shared_from_this(), thread);
}

Task<> FileSystem::unmount() {
  Link link(*thread_, parameters_.server, 0);
  co_await link.call(Request::leave, mount_, {});
}

}  // namespace perdura::systems::novad
