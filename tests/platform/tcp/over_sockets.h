// A platform whose threads have a socket endpoint instead of the one of their device.
#pragma once

#include <memory>
#include <utility>

#include "platform/platform.h"

namespace perdura::test {

inline Platform::Body over_sockets(Platform::Body body) {
  return [body = std::move(body)](Thread& thread) -> Task<> {
    const auto endpoint =
        thread.node.create_socket_endpoint(thread, thread.endpoint.address().port);
    Thread socket_thread{thread.node, thread.executor, *endpoint};
    co_await body(socket_thread);
  };
}

class OverSockets final : public Platform {
 public:
  explicit OverSockets(std::unique_ptr<Platform> platform) : platform_(std::move(platform)) {}

  std::string_view name() const override { return platform_->name(); }
  bool modelled() const override { return platform_->modelled(); }
  NodeId node_count() const override { return platform_->node_count(); }
  Node* local_node(NodeId id) override { return platform_->local_node(id); }
  std::shared_ptr<StartedThread> start(NodeId node, fabric::Port port, CompletionMode mode,
                                       Body body) override {
    return platform_->start(node, port, mode, over_sockets(std::move(body)));
  }
  std::shared_ptr<StartedThread> start_service(NodeId node, fabric::Port port, CompletionMode mode,
                                               Body body) override {
    return platform_->start_service(node, port, mode, over_sockets(std::move(body)));
  }
  void run() override { platform_->run(); }
  std::unique_ptr<Barrier> create_barrier(std::uint32_t participants) override {
    return platform_->create_barrier(participants);
  }

 private:
  std::unique_ptr<Platform> platform_;
};

}  // namespace perdura::test
