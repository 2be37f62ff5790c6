// The platform `sockets`: a server at an address that its clients know, and processes that do not belong
// to its cluster. Both sides are platforms of this process, each run by a thread.
#include "platform/sockets/sockets_platform.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <thread>

#include "platform/base/error.h"
#include "tests/support/temporary_directory.h"

namespace perdura {
namespace {

using fabric::Access;
using fabric::Status;

class SocketsPlatformTest : public testing::Test {
 protected:
  // A port at which nobody listens at this moment.
  const std::uint16_t port_ = fabric::tcp::listen_on("127.0.0.1").port;
  const test::TemporaryDirectory folder_{"/dev/shm", "sockets"};

  SocketsOptions options(const std::string& job, std::uint32_t ports) const {
    return {.job = job,
            .addresses = {{0, {.host = "127.0.0.1", .port = port_}}},
            .node = ports > 0 ? NodeId{0} : NodeId{1},
            .ports = ports,
            .pm_directory = ports > 0 ? folder_.path().string() : "",
            .connection_timeout = Milliseconds(200)};
  }

  // Serves a region, whose key is the answer to those who connect, while `client` runs.
  void serve_while(const std::function<void()>& client) const {
    SocketsPlatform platform(options("ours", 1));
    const auto serving = platform.start(0, 0, CompletionMode::event, [](Thread& thread) -> Task<> {
      const auto region = thread.node.create_region("served", 4096, pmem::Medium::pm);
      const auto memory = thread.endpoint.register_memory(*region, Access::remote_all);
      std::vector<std::unique_ptr<fabric::QueuePair>> peers;
      for (;;) {
        const auto request = co_await thread.endpoint.next_connection();
        peers.push_back(request->accept({}, std::as_bytes(std::span(&memory.key.value, 1))));
      }
    });
    std::thread running([&] { platform.run(); });
    client();
    serving->stop();
    running.join();
  }

  Status connect_as(
      const std::string& job,
      const std::function<Task<>(fabric::Connection&, Thread&)>& use = nullptr) const {
    Status status{};
    SocketsPlatform platform(options(job, 0));
    platform.start(1, 0, CompletionMode::event, [&](Thread& thread) -> Task<> {
      fabric::Connection made = co_await thread.endpoint.connect({0, 0}, {}, {});
      status = made.status;
      if (use && made.status == Status::success) co_await use(made, thread);
    });
    platform.run();
    return status;
  }
};

TEST_F(SocketsPlatformTest, AClientReadsWhatAnotherHasWritten) {
  serve_while([&] {
    const auto words_of = [](fabric::Connection& made) {
      fabric::RemoteKey key;
      std::memcpy(&key.value, made.private_data.data(), sizeof key.value);
      return fabric::RemoteAddress{key, 64};
    };
    const auto write = [&](fabric::Connection& made, Thread& thread) -> Task<> {
      const auto memory = thread.node.create_region("mine", 64, pmem::Medium::dram);
      const auto mine = thread.endpoint.register_memory(*memory, Access::local);
      memory->store(0, 4711);
      const fabric::Completion done =
          co_await made.queue_pair->write(mine.local(0, 8), words_of(made));
      EXPECT_TRUE(done);
    };
    const auto read = [&](fabric::Connection& made, Thread& thread) -> Task<> {
      const auto memory = thread.node.create_region("mine", 64, pmem::Medium::dram);
      const auto mine = thread.endpoint.register_memory(*memory, Access::local);
      const fabric::Completion done =
          co_await made.queue_pair->read(mine.local(0, 8), words_of(made));
      EXPECT_TRUE(done);
      EXPECT_EQ(memory->load(0), 4711U);
    };
    EXPECT_EQ(connect_as("ours", write), Status::success);
    EXPECT_EQ(connect_as("ours", read), Status::success);
  });
}

TEST_F(SocketsPlatformTest, WhoBelongsToAnotherClusterIsRefused) {
  serve_while([&] { EXPECT_EQ(connect_as("theirs"), Status::retry_exceeded); });
}

TEST_F(SocketsPlatformTest, AServerThatDoesNotRunIsNotReached) {
  EXPECT_EQ(connect_as("ours"), Status::retry_exceeded);
}

TEST_F(SocketsPlatformTest, AnAddressThatIsTakenOrNotOfThisHostIsRefused) {
  const auto refusal = [](SocketsOptions options) -> std::string {
    try {
      const SocketsPlatform platform(std::move(options));
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  const std::string where = "127.0.0.1:" + std::to_string(port_);
  {
    const SocketsPlatform platform(options("ours", 1));
    EXPECT_EQ(refusal(options("ours", 1)), where + ": a process listens there already");
  }
  SocketsOptions elsewhere = options("ours", 1);
  elsewhere.addresses[0].host = "192.0.2.1";  // reserved for documents
  EXPECT_EQ(refusal(elsewhere),
            "192.0.2.1:" + std::to_string(port_) + ": is not an address of this host");
}

// A client has no persistent memory, so it must not find any.
TEST_F(SocketsPlatformTest, AClientHasNoPersistentMemory) {
  SocketsPlatform platform(options("ours", 0));
  EXPECT_THROW(platform.local_node(1)->create_region("any", 4096, pmem::Medium::pm), UsageError);
  EXPECT_THROW(platform.local_node(1)->open_region("any"), UsageError);
}

}  // namespace
}  // namespace perdura
