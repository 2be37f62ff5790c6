// Another node of the machine in the place of a child process, for plugins that are part of a test.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "platform/child_process.h"
#include "platform/message_ring.h"
#include "systems/mcas/ado/channel.h"

namespace perdura::systems::mcas::ado::test {

// Another node of the machine as a process with which messages are exchanged. An empty message is
// its last.
class RingPeer final : public PeerProcess {
 public:
  RingPeer(Node& node, const std::string& out, const std::string& in)
      : out_(rings_of(node).open_producer(out, kQueue)),
        in_(rings_of(node).open_consumer(in, kQueue)) {}
  static std::shared_ptr<RingPeer> of_shard(Node& node) {
    return std::make_shared<RingPeer>(node, "to_process", "to_shard");
  }
  static std::shared_ptr<RingPeer> of_process(Node& node) {
    return std::make_shared<RingPeer>(node, "to_shard", "to_process");
  }

  Bytes longest_message() const override { return kQueue.message_size; }
  bool try_send(std::span<const std::byte> message) override { return out_->try_push(message); }
  Task<> send(std::span<const std::byte> message) override { return out_->push(message); }
  Task<std::optional<Bytes>> receive(std::span<std::byte> into) override {
    const Bytes length = co_await in_->pop(into);
    co_return length == 0 ? std::nullopt : std::optional(length);
  }

 private:
  std::unique_ptr<RingProducer> out_;
  std::unique_ptr<RingConsumer> in_;
};

}  // namespace perdura::systems::mcas::ado::test
