// A small Orion on `sim` whose servers fail and come back, and files of pages that have a value each.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "platform/runtime/work.h"
#include "platform/sim/sim_platform.h"
#include "systems/orion/orion.h"
#include "systems/orion/protocol/counted.h"
#include "systems/orion/protocol/layout.h"
#include "tests/support/platforms.h"

namespace perdura::systems::orion::test {

using fs::InodeNumber;
using fs::kRootInode;

inline constexpr NodeId kMds = 0;
inline constexpr NodeId kOne = 1;
inline constexpr NodeId kOther = 2;
inline constexpr NodeId kClient = 3;
inline constexpr NodeId kMirrorOfMds = 4;
inline constexpr std::size_t kCatchUps = kServerMetrics.size() - 2;
inline constexpr std::size_t kFetched = kServerMetrics.size() - 1;

inline Task<InodeNumber> make_file(fs::Session& session, std::string_view name = "file") {
  const auto made = co_await session.create(kRootInode, name, {.mode = S_IFREG | 0644}, {});
  EXPECT_TRUE(made.has_value());
  co_return made ? made->inode : InodeNumber{};
}

// An MDS, its mirror if it has one, a group of two stores, and a client, which fails servers and starts them
// again.
class Group {
 public:
  explicit Group(GivenParameters parameters = {}, bool has_mirror = false)
      : config_{.size = 1 * MiB, .threads = 8, .parameters = std::move(parameters)},
        platform_(perdura::test::erda_testbed(), kMirrorOfMds + 1) {
    config_.parameters.try_emplace("client_patience_us", 3000);
    config_.parameters.try_emplace("mds_patience_us", 3000);
    config_.parameters.try_emplace("chunk_pages", 16);
    config_.servers = {{kMds, fs::FsRole::metadata, 0},
                       {kOne, fs::FsRole::store, 0},
                       {kOther, fs::FsRole::store, 0}};
    if (has_mirror) config_.servers.push_back({kMirrorOfMds, fs::FsRole::mirror, 0});
  }

  // `other`: what another thread of the client does, if there is one.
  void run(const std::function<Task<>(Thread&)>& body,
           const std::function<Task<>(Thread&)>& other = nullptr) {
    platform_.track_durability({pmem::PersistenceDomain::dmp, true});
    for (const fs::FsServerNode& server : config_.servers) start(server.node);
    platform_.start(kClient, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      for (const fs::FsServerNode& server : config_.servers) co_await until_open(server.node);
      co_await sleep_for(Milliseconds(1));
      co_await body(thread);
    });
    if (other) platform_.start(kClient, 1, CompletionMode::polling, other);
    if (internal_) platform_.start(kOne, kInternalPort, CompletionMode::polling, internal_);
    platform_.run();
  }

  // run() has a client on the node of a store, too, which does this.
  static constexpr fabric::Port kInternalPort = 1;
  void set_internal_client(const std::function<Task<>(Thread&)>& body) { internal_ = body; }
  // The same with a session and a file that it has made.
  void run_with_file(const std::function<Task<>(Thread&, fs::Session&, InodeNumber)>& body) {
    run([&](Thread& thread) -> Task<> {
      const auto files = co_await mount(thread);
      const auto session = files->attach(thread);
      const InodeNumber file = co_await make_file(*session);
      co_await body(thread, *session, file);
    });
  }

  Task<> power_fails(NodeId node) {
    platform_.at(Executor::current().now(), [this, node] {
      pmem::LeastChoices least;
      parts_[node].reset();
      platform_.fail_power(node, least);
    });
    co_await sleep_for(Microseconds(100));
  }
  Task<> comes_back(NodeId node) {
    platform_.at(Executor::current().now(), [this, node] { start(node); });
    co_await until_open(node);
  }
  // The server's thread stands still for a while, and its connections stay open.
  void hangs(NodeId node, Picoseconds duration) { hangs_[node] = duration; }
  // Until the store has caught up so often since it was started.
  Task<> until_caught_up(NodeId node, double times = 1) {
    for (int i = 0; i < 100 && parts_[node]->metrics()[kCatchUps] < times; ++i) {
      co_await sleep_for(Microseconds(100));
    }
    EXPECT_EQ(parts_[node]->metrics()[kCatchUps], times);
    co_await sleep_for(Microseconds(100));
  }
  double fetched(NodeId node) { return parts_[node]->metrics()[kFetched]; }
  // Its memory is replaced by a new one, which is empty.
  void replace_memory(NodeId node) { is_made_[node] = false; }

  Task<std::shared_ptr<fs::FileSystem>> mount(Thread& thread) {
    return kOrion.mount(thread, "files", config_);
  }

  // A client's connections to the MDS break, and both live on.
  Task<> link_breaks(fabric::Address client = {kClient, 0}) {
    platform_.at(Executor::current().now(), [this, client] {
      platform_.break_connections(client, {kMds, 0});
    });
    co_await sleep_for(Microseconds(20));
  }

 private:
  void start(NodeId node) {
    for (std::uint32_t port = 0; port < kOrion.cluster->workers(config_, node); ++port) {
      platform_.start_service(node, static_cast<fabric::Port>(port), CompletionMode::polling,
                              [this, node](Thread& thread) {
                                return thread.endpoint.address().port == 0 ? serve(thread, node)
                                                                           : help(thread, node);
                              });
    }
  }
  // Serves the part when the first thread has opened it.
  Task<> help(Thread& thread, NodeId node) {
    co_await until_open(node);
    const std::shared_ptr<fs::FsServer> part = parts_[node];
    co_await part->serve(thread);
  }
  Task<> serve(Thread& thread, NodeId node) {
    if (!std::exchange(is_made_[node], true)) {
      for (const std::string& name :
           {pages_region("files"), immediates_region("files"), pair_region("files"),
            buffers_region("files"), std::string("files"), std::string("files.logs")}) {
        if (thread.node.open_region(name) != nullptr) thread.node.remove_region(name);
      }
      co_await kOrion.make(thread, "files", config_);
    }
    auto part = co_await kOrion.cluster->open(thread, "files", config_);
    co_await yield();
    thread.executor.spawn(hang(node));
    parts_[node] = part;
    co_await part->serve(thread);
  }
  Task<> hang(NodeId node) {
    for (;;) {
      const Picoseconds duration = std::exchange(hangs_[node], Picoseconds{});
      if (duration > Picoseconds{}) {
        cost_meter->spin_until(Executor::current().now() + duration);
        co_await yield();
      }
      co_await sleep_for(Microseconds(10));
    }
  }
  Task<> until_open(NodeId node) {
    while (!parts_[node]) co_await sleep_for(Microseconds(20));
  }

  fs::FsConfig config_;
  std::function<Task<>(Thread&)> internal_;
  sim::SimPlatform platform_;
  std::array<Picoseconds, kMirrorOfMds + 1> hangs_{};
  std::array<bool, kMirrorOfMds + 1> is_made_{};
  std::array<std::shared_ptr<fs::FsServer>, kMirrorOfMds + 1> parts_;
};

inline std::vector<std::byte> page_of_value(int value) {
  return std::vector<std::byte>(kPage, static_cast<std::byte>(value));
}

// Writes pages of a file, of which `first` gets `value`, the next one the next value, and so on.
inline Task<> write_pages(fs::Session& session, InodeNumber file, int first, int count, int value) {
  for (int i = 0; i < count; ++i) {
    const auto written = co_await session.write(file, static_cast<Bytes>(first + i) * kPage,
                                                page_of_value(value + i), {});
    EXPECT_TRUE(written.has_value()) << std::make_error_code(written.error()).message();
  }
}

// Expects pages as write_pages() has left them, by a new mount, which has nothing cached.
inline Task<> expect_pages(Group& group, Thread& thread, InodeNumber file, int first, int count,
                           int value) {
  const auto files = co_await group.mount(thread);
  auto session = files->attach(thread);
  for (int i = 0; i < count; ++i) {
    std::vector<std::byte> found(kPage);
    const auto read = co_await session->read(file, static_cast<Bytes>(first + i) * kPage, found);
    EXPECT_TRUE(read.has_value());
    EXPECT_EQ(found, page_of_value(value + i)) << "page " << first + i;
  }
  session.reset();
  co_await files->unmount();
}

}  // namespace perdura::systems::orion::test
