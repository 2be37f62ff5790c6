// FileMRs: unprovisioned until they are bound to a file, several of one file, and one file on
// several devices.
#include "systems/file_region.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "platform/base/error.h"
#include "tests/support/platforms.h"

namespace perdura::systems {
namespace {

using fabric::Access;
using fabric::Extent;
using fabric::RemoteKey;
using fabric::Status;

constexpr Bytes kRegion = 64 * KiB;
constexpr fabric::Port kPort = 5;
constexpr std::array kFile{Extent{0, 8192, 4096}, Extent{4096, 0, 4096}};
constexpr std::array kMoved{Extent{0, 16384, 4096}};

std::string refusal_of(const std::function<void()>& use) {
  try {
    use();
  } catch (const PlatformError& error) {
    return error.what();
  }
  return "no error";
}

// A peer that READs and WRITEs single words.
class Peer {
 public:
  Peer(fabric::Endpoint& endpoint, pmem::Region& region)
      : endpoint_(endpoint), memory_(endpoint.register_memory(region, Access::local)) {}

  // Each access has a connection of its own: one that is refused breaks it.
  Task<Status> write(RemoteKey key, Bytes at, std::uint64_t value) {
    memory_.region->store(0, value);
    const auto connection = co_await endpoint_.connect({0, kPort}, {}, {});
    co_return (co_await connection.queue_pair->write(memory_.local(0, kWord), {key, at})).status;
  }
  Task<std::uint64_t> read(RemoteKey key, Bytes at) {
    const auto connection = co_await endpoint_.connect({0, kPort}, {}, {});
    const auto done = co_await connection.queue_pair->read(memory_.local(8, kWord), {key, at});
    co_return done ? memory_.region->load(8) : kRefused;
  }
  static constexpr std::uint64_t kRefused = ~std::uint64_t{0};

 private:
  fabric::Endpoint& endpoint_;
  fabric::MemoryRegion memory_;
};

Task<> accept_all(fabric::Endpoint& endpoint,
                  std::vector<std::unique_ptr<fabric::QueuePair>>& accepted) {
  for (;;) accepted.push_back((co_await endpoint.next_connection())->accept({}, {}));
}

class FileRegions : public testing::TestWithParam<std::string> {
 protected:
  // The server executes `steps`, one for each number that the client sets `step_` to, and then
  // sets `done_` to it.
  using Steps = std::vector<std::function<Task<>()>>;
  using Serve = std::function<Steps(Thread&, fabric::Endpoint& sockets, pmem::Region&)>;
  using Use = std::function<Task<>(Peer& device, Peer& sockets)>;

  void run(const Serve& serve, const Use& use) {
    const auto platform = test::make_platform(GetParam(), 2);
    platform->start_service(0, kPort, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto region = thread.node.create_region("files", kRegion, pmem::Medium::pm);
      for (Bytes at = 0; at < kRegion; at += kWord) region->store(at, at);
      const auto sockets = thread.node.create_socket_endpoint(thread, kPort);
      std::vector<std::unique_ptr<fabric::QueuePair>> accepted;
      std::vector<std::unique_ptr<fabric::QueuePair>> over_tcp;
      Executor::current().spawn(accept_all(thread.endpoint, accepted));
      Executor::current().spawn(accept_all(*sockets, over_tcp));
      const Steps steps = serve(thread, *sockets, *region);
      is_ready_ = true;
      for (std::size_t next = 0; next < steps.size(); ++next) {
        while (step_ <= next) co_await sleep_for(Microseconds(20));
        co_await steps[next]();
        ++done_;
      }
      for (;;) co_await sleep_for(Milliseconds(1));
    });
    platform->start(1, kPort, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto region = thread.node.create_region("data", 4096, pmem::Medium::dram);
      const auto endpoint = thread.node.create_socket_endpoint(thread, kPort);
      Peer device(thread.endpoint, *region);
      Peer sockets(*endpoint, *region);
      while (!is_ready_) co_await sleep_for(Microseconds(20));
      co_await use(device, sockets);
    });
    platform->run();
  }
  Task<> step() {
    const std::size_t next = ++step_;
    while (done_ < next) co_await sleep_for(Microseconds(20));
  }

  std::atomic<bool> is_ready_{false};
  std::atomic<std::size_t> step_{0};
  std::atomic<std::size_t> done_{0};
};

TEST_P(FileRegions, AreOfNoUseUntilTheyAreBound) {
  RemoteKey first;
  RemoteKey second;
  std::unique_ptr<FileRegion> file;
  run(
      [&](Thread& thread, fabric::Endpoint&, pmem::Region& region) -> Steps {
        file = std::make_unique<FileRegion>(thread.endpoint, region, Access::remote_all);
        EXPECT_FALSE(file->is_bound());
        EXPECT_EQ(refusal_of([&] { file->filekey(); }),
                  "a FileMR that is bound to no file has no filekey; bind it to a file first");
        return {[&]() -> Task<> {
                  std::string refused;
                  try {
                    co_await file->update(0, 4096, kMoved);
                  } catch (const PlatformError& error) {
                    refused = error.what();
                  }
                  EXPECT_NE(refused.find("bind it to a file first"), std::string::npos);
                  first = file->bind(kFile);
                  EXPECT_EQ(file->filekey(), first);
                  EXPECT_NE(refusal_of([&] { file->bind(kFile); }).find("already"),
                            std::string::npos);
                },
                [&]() -> Task<> { co_await file->destroy(); },
                [&]() -> Task<> {
                  EXPECT_FALSE(file->is_bound());
                  second = file->bind(kMoved);
                  co_return;
                },
                [&]() -> Task<> {
                  file.reset();
                  co_return;
                }};
      },
      [&](Peer& peer, Peer&) -> Task<> {
        EXPECT_EQ(co_await peer.read({}, 0), Peer::kRefused) << "there is no filekey";
        co_await step();
        EXPECT_EQ(co_await peer.read(first, 8), 8200U);
        co_await step();
        EXPECT_EQ(co_await peer.read(first, 8), Peer::kRefused);
        co_await step();
        EXPECT_NE(first, second);
        EXPECT_EQ(co_await peer.read(first, 8), Peer::kRefused);
        EXPECT_EQ(co_await peer.read(second, 8), 16392U);
        co_await step();
        EXPECT_EQ(co_await peer.read(second, 8), Peer::kRefused);
      });
}

// Each filekey has its own rights and its own end.
TEST_P(FileRegions, MayBeSeveralOfOneFile) {
  std::unique_ptr<FileRegion> reader;
  std::unique_ptr<FileRegion> writer;
  RemoteKey read_key;
  RemoteKey write_key;
  run(
      [&](Thread& thread, fabric::Endpoint&, pmem::Region& region) -> Steps {
        reader = std::make_unique<FileRegion>(thread.endpoint, region, Access::remote_read);
        writer = std::make_unique<FileRegion>(thread.endpoint, region,
                                              Access::remote_read | Access::remote_write);
        read_key = reader->bind(kFile);
        write_key = writer->bind(kFile);
        return {[&]() -> Task<> {
                  co_await reader->update(0, 4096, kMoved);
                  co_await writer->update(0, 4096, kMoved);
                },
                [&]() -> Task<> { co_await writer->destroy(); },
                [&]() -> Task<> {
                  reader.reset();
                  writer.reset();
                  co_return;
                }};
      },
      [&](Peer& peer, Peer&) -> Task<> {
        EXPECT_EQ(co_await peer.write(write_key, 4096, 7), Status::success);
        EXPECT_EQ(co_await peer.read(read_key, 4096), 7U);
        EXPECT_EQ(co_await peer.write(read_key, 4096, 8), Status::remote_access_error);
        co_await step();
        EXPECT_EQ(co_await peer.read(read_key, 8), 16392U);
        EXPECT_EQ(co_await peer.read(write_key, 8), 16392U);
        co_await step();
        EXPECT_EQ(co_await peer.read(write_key, 8), Peer::kRefused);
        EXPECT_EQ(co_await peer.read(read_key, 4096), 7U);
        co_await step();
        EXPECT_EQ(co_await peer.read(read_key, 8), Peer::kRefused);
      });
}

// A device in hardware, and one in software that is reached over TCP.
TEST_P(FileRegions, MayBeOfOneFileOnSeveralDevices) {
  std::vector<std::unique_ptr<FileRegion>> files;
  run(
      [&](Thread& thread, fabric::Endpoint& sockets, pmem::Region& region) -> Steps {
        for (fabric::Endpoint* const device : {&thread.endpoint, &sockets}) {
          files.push_back(std::make_unique<FileRegion>(*device, region,
                                                       Access::remote_read | Access::remote_write));
          files.back()->bind(kFile);
        }
        return {[&]() -> Task<> {
                  for (const auto& file : files) co_await file->update(0, 4096, kMoved);
                },
                [&]() -> Task<> {
                  for (const auto& file : files) co_await file->invalidate(4096, 4096);
                },
                [&]() -> Task<> {
                  for (const auto& file : files) co_await file->destroy();
                  files.clear();
                }};
      },
      [&](Peer& device, Peer& sockets) -> Task<> {
        const RemoteKey by_device = files.at(0)->filekey();
        const RemoteKey over_tcp = files.at(1)->filekey();
        EXPECT_EQ(co_await device.write(by_device, 4096, 7), Status::success);
        while (co_await device.read(by_device, 4096) != 7) {
        }
        EXPECT_EQ(co_await sockets.read(over_tcp, 4096), 7U);
        EXPECT_EQ(co_await sockets.read(over_tcp, 8), 8200U);
        co_await step();
        EXPECT_EQ(co_await device.read(by_device, 8), 16392U);
        EXPECT_EQ(co_await sockets.read(over_tcp, 8), 16392U);
        co_await step();
        EXPECT_EQ(co_await device.read(by_device, 4096), Peer::kRefused);
        EXPECT_EQ(co_await sockets.read(over_tcp, 4096), Peer::kRefused);
        EXPECT_EQ(co_await sockets.read(over_tcp, 8), 16392U);
        co_await step();
        EXPECT_EQ(co_await device.read(by_device, 8), Peer::kRefused);
        EXPECT_EQ(co_await sockets.read(over_tcp, 8), Peer::kRefused);
      });
}

INSTANTIATE_TEST_SUITE_P(Platforms, FileRegions, testing::ValuesIn(test::platform_names()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace perdura::systems
