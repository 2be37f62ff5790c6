// A server and a client whose threads have socket endpoints, for tests of what only these do.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "platform/shm/shm_platform.h"
#include "tests/platform/tcp/over_sockets.h"

namespace perdura::test {

// A server on node 0 and a client on node 1, which meet at a barrier.
class TwoEnds : public testing::TestWithParam<CompletionMode> {
 protected:
  TwoEnds() {
    ShmOptions options;
    options.node_count = 2;
    platform_.emplace(std::move(options));
    barrier_ = platform_->create_barrier(2);
  }

  using Body = std::function<Task<>(Thread&)>;
  void run(const Body& server, const Body& client) {
    platform_->start(0, 1, GetParam(), over_sockets(server));
    platform_->start(1, 1, GetParam(), over_sockets(client));
    platform_->run();
  }
  Task<> meet() { return barrier_->arrive_and_wait(); }
  std::string published() const { return platform_->job_directory() + "/node-0.socket-1"; }

  static constexpr fabric::Address kServer{0, 1};
  std::optional<ShmPlatform> platform_;
  std::unique_ptr<Platform::Barrier> barrier_;
};
inline const auto kBothModes = testing::Values(CompletionMode::polling, CompletionMode::event);
inline std::string mode_name(const testing::TestParamInfo<CompletionMode>& mode) {
  return mode.param == CompletionMode::polling ? "polling" : "event";
}

// One end of a connection between the server and the client. Each tells the other the key of its
// memory.
struct SocketEnd {
  explicit SocketEnd(Thread& on, pmem::Medium medium = pmem::Medium::dram, Bytes size = 64 * KiB)
      : thread(on),
        region(on.node.create_region("memory", size, medium)),
        memory(on.endpoint.register_memory(*region, fabric::Access::remote_all)),
        key(memory.key),
        receives(on.endpoint.create_receive_queue(8)) {}
  Thread& thread;
  std::unique_ptr<pmem::Region> region;
  fabric::MemoryRegion memory;
  fabric::RemoteKey key;  // what the other end is told
  std::unique_ptr<fabric::ReceiveQueue> receives;
  fabric::CompletionQueue completions;
  std::unique_ptr<fabric::QueuePair> peer;
  fabric::RemoteAddress there;

  fabric::QueuePairOptions options() {
    return {.receive_queue = receives.get(), .completions = &completions};
  }
  std::span<const std::byte> own_key() const { return std::as_bytes(std::span(&key, 1)); }
  void take_key(std::span<const std::byte> from) {
    std::memcpy(&there.key, from.data(), sizeof there.key);
  }
  Task<> accept() {
    auto request = co_await thread.endpoint.next_connection();
    take_key(request->private_data());
    peer = request->accept(options(), own_key());
  }
  Task<> connect() {
    fabric::Connection connection =
        co_await thread.endpoint.connect({0, 1}, options(), {own_key().begin(), own_key().end()});
    EXPECT_EQ(connection.status, fabric::Status::success);
    take_key(connection.private_data);
    peer = std::move(connection.queue_pair);
  }
};

inline std::vector<std::byte> bytes(std::size_t size, int value) {
  return std::vector(size, static_cast<std::byte>(value));
}

inline std::vector<std::byte> contents(const pmem::Region& region, Bytes offset, std::size_t size) {
  std::vector<std::byte> found(size);
  region.read(offset, found);
  return found;
}

}  // namespace perdura::test
