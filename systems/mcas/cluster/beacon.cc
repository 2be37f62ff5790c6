#include "systems/mcas/cluster/beacon.h"

#include <list>

#include "rpc/messages.h"
#include "rpc/sessions.h"

namespace perdura::systems::mcas::cluster {

namespace {

constexpr Bytes kRoom = round_up(sizeof(Beat), kCacheLine);

}  // namespace

Beacon::Beacon(Thread& thread, const Timing& timing, Life life)
    : thread_(thread),
      timing_(timing),
      life_(life),
      messages_(thread.node.create_region("heartbeats", 2 * kRoom, pmem::Medium::dram)),
      memory_(thread.endpoint.register_memory(*messages_, fabric::Access::local)) {
  rpc::write_message(message(false).bytes(), Beat{.life = life_});
  rpc::write_message(message(true).bytes(), Beat{.life = life_, .leaves = 1});
}

fabric::LocalBuffer Beacon::message(bool leaves) const {
  return memory_.local(leaves ? kRoom : 0, sizeof(Beat));
}

Task<> Beacon::serve() {
  return rpc::accept_connections(
      thread_.endpoint,
      [self = shared_from_this()](fabric::ConnectionRequest& request) { self->accept(request); });
}

void Beacon::accept(fabric::ConnectionRequest& request) {
  const auto hello = rpc::read_message<Hello>(request.private_data());
  if (hello.version != kVersion || leaving_) return request.reject();
  const auto watcher = std::make_shared<WatcherConnection>();
  watcher->no_messages = thread_.endpoint.create_receive_queue(1);
  const Beat beat{.life = life_};
  watcher->queue_pair =
      request.accept({watcher->no_messages.get(), &completions_}, rpc::bytes_of(beat));
  watchers_.push_back(watcher);
  Executor::current().spawn(tell(watcher));
}

Task<> Beacon::tell(std::shared_ptr<WatcherConnection> watcher) {
  const std::shared_ptr<Beacon> self = shared_from_this();
  while (!leaving_) {
    co_await sleep_for(timing_.heartbeat);
    if (!co_await watcher->queue_pair->send(message(false))) break;
  }
  std::erase(watchers_, watcher);
}

Task<> Beacon::leave() {
  leaving_ = true;
  const std::vector<std::shared_ptr<WatcherConnection>> watchers = watchers_;
  std::list<fabric::RdmaOperation> last;
  for (const auto& watcher : watchers) {
    last.emplace_back(*watcher->queue_pair,
                      fabric::WorkRequest{.opcode = fabric::Opcode::send, .local = message(true)})
        .post();
  }
  for (fabric::RdmaOperation& operation : last) co_await operation;
}

}  // namespace perdura::systems::mcas::cluster
