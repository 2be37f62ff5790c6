#include "systems/orion/client/file_system.h"

#include <fmt/format.h>

#include "platform/base/error.h"
#include "systems/orion/client/link.h"
#include "systems/orion/client/session.h"
#include "systems/orion/store/store.h"

namespace perdura::systems::orion {

FileSystem::FileSystem(Node& node, std::string name, fs::FsConfig config,
                       const Parameters& parameters)
    : name_(std::move(name)), config_(std::move(config)), parameters_(parameters) {
  for (const fs::FsServerNode& server : config_.servers) {
    if (server.role == fs::FsRole::metadata) mds_ = server.node;
    if (server.role == fs::FsRole::store && server.node == node.machine()) {
      local_ = open_pages(node, name_, parameters_, server.group);
    }
  }
}

Task<> FileSystem::probe(Thread& thread) {
  thread_ = &thread;
  MdsLink link(thread, mds_, parameters_, 0, true);
  if (!co_await link.connect()) {
    throw PlatformError(
        fmt::format("cannot connect to the metadata server of '{}' on node {}", name_, mds_));
  }
  mds_ = link.mds();
  mount_ = link.welcome().mount;
}

std::unique_ptr<fs::Session> FileSystem::attach(Thread& thread) {
  return std::make_unique<Session>(shared_from_this(), thread);
}

// The connections of the sessions are gone; this waits until the MDS has noticed.
Task<> FileSystem::unmount() {
  MdsLink link(*thread_, mds_, parameters_, 0, true);
  Outgoing leave{.header = {.request = Request::leave}};
  leave.arguments.device = mount_;
  co_await link.call(leave);
}

std::vector<std::uint64_t> FileSystem::events() const {
  std::vector<std::uint64_t> events;
  for (const auto& count : counts_) events.push_back(count.load(std::memory_order_relaxed));
  return events;
}

}  // namespace perdura::systems::orion
