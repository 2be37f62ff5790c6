// Commits: FLUSHes for persistence of all that was written through a registration of extents. What
// a power failure leaves after one is tested on the model (tests/platform/sim/commit_test.cc).
#include <algorithm>

#include "platform/base/error.h"
#include "tests/platform/conformance/conformance.h"

namespace perdura::conformance {

using fabric::Access;
using fabric::Completion;
using fabric::Extent;
using fabric::ExtentMap;
using fabric::Opcode;
using fabric::OperationFlags;
using fabric::RangeFaults;
using fabric::RemoteKey;
using fabric::Status;
using fabric::WorkRequest;
using pmem::Medium;

namespace {

constexpr Bytes kSizeWord = 32 * KiB;
constexpr OperationFlags kCommits{.commit = true};

// A registration of a server's persistent region with two extents, to which peers may append.
struct Committable {
  RangeFaults faults;
  ExtentMap map;

  Committable(Side& server, Access access)
      : map(server.thread.endpoint.register_extents(
            *server.region, std::array{Extent{0, 4096, 512}, Extent{512, 1024, 512}}, access)) {
    server.thread.endpoint.allow_appends(map, kSizeWord, faults);
  }
};

PairOptions on_persistent_memory() {
  PairOptions options;
  options.memory = Medium::pm;
  return options;
}

// Every way to ask for a commit of a registration.
std::vector<WorkRequest> all_commits(const Side& client, RemoteKey key) {
  const fabric::LocalBuffer word = client.local(0, 8);
  return {
      {.opcode = Opcode::commit, .placement = fabric::Placement::persistence, .remote = {key, 0}},
      {.opcode = Opcode::write, .flags = kCommits, .local = word, .remote = {key, 0}},
      {.opcode = Opcode::append, .flags = kCommits, .local = word, .remote = {key, 0}}};
}

}  // namespace

TEST_P(FabricAccess, ACommitCompletesAfterWhatItCommits) {
  PERDURA_NEEDS(commits);
  RemoteKey key;
  connected(
      on_persistent_memory(),
      [&](Side& server) -> Task<> {
        Committable file(server, Access::remote_all);
        key = file.map.key;
        co_await server.meet();
        co_await server.meet();
        // Nothing but the commits has told that the data is here.
        EXPECT_EQ(contents(*server.region, 4096 + 100, 300), pattern(300, 1));
        EXPECT_EQ(contents(*server.region, 1024 + 8, 200), pattern(200, 2));
        EXPECT_EQ(contents(*server.region, 4096, 40), pattern(40, 3));
        EXPECT_EQ(server.region->load(kSizeWord), 40U);
        co_await server.meet();
      },
      [&](Side& client) -> Task<> {
        fabric::QueuePair& peer = *client.queue_pair;
        co_await client.meet();
        EXPECT_TRUE(co_await peer.commit(key)) << "nothing was written yet";
        client.region->write(0, pattern(300, 1));
        client.region->write(512, pattern(200, 2));
        client.region->write(1024, pattern(40, 3));
        auto first = peer.write(client.local(0, 300), {key, 100});
        first.post();
        auto commit = peer.commit(key);
        commit.post();
        EXPECT_TRUE(co_await peer.write(client.local(512, 200), {key, 520}, kCommits));
        EXPECT_TRUE(co_await commit);
        EXPECT_TRUE(co_await first);
        const Completion appended = co_await peer.append(client.local(1024, 40), key, kCommits);
        EXPECT_TRUE(appended);
        EXPECT_EQ(appended.old_value, 0U);
        EXPECT_TRUE(co_await peer.commit(key));
        co_await client.meet();
        co_await client.meet();
      });
}

// Refused, and never acknowledged, where there is no FLUSH for persistence.
TEST_P(FabricAccess, ACommitIsRefusedWhereTheDeviceHasNone) {
  if (GetParam().can.commits) GTEST_SKIP() << "the device commits";
  if (!GetParam().can.appends) GTEST_SKIP() << "the device: no appends";
  for (std::size_t i = 0; i < 3; ++i) {
    RemoteKey key;
    connected(
        on_persistent_memory(),
        [&](Side& server) -> Task<> {
          EXPECT_FALSE(server.thread.endpoint.capabilities().commits);
          Committable file(server, Access::remote_all);
          key = file.map.key;
          co_await server.meet();
          co_await server.meet();
          EXPECT_EQ(server.region->load(4096), 0U);
          EXPECT_EQ(server.region->load(kSizeWord), 0U);
        },
        [&](Side& client) -> Task<> {
          client.region->store(0, 1);
          co_await client.meet();
          fabric::RdmaOperation commit(*client.queue_pair, all_commits(client, key)[i]);
          EXPECT_EQ((co_await commit).status, Status::unsupported) << i;
          EXPECT_FALSE(client.queue_pair->connected());
          co_await client.meet();
        });
  }
}

TEST_P(FabricAccess, ACommitNeedsTheRightToFlushBesideThatOfItsOperation) {
  PERDURA_NEEDS(commits);
  for (const Access access : {Access::remote_read, Access::remote_read | Access::remote_write,
                              Access::remote_flush, Access::remote_write | Access::remote_flush}) {
    for (std::size_t i = 0; i < 3; ++i) {
      RemoteKey key;
      connected(
          on_persistent_memory(),
          [&](Side& server) -> Task<> {
            Committable file(server, access);
            key = file.map.key;
            co_await server.meet();
            co_await server.meet();
          },
          [&](Side& client) -> Task<> {
            client.region->store(0, 1);
            co_await client.meet();
            const WorkRequest request = all_commits(client, key)[i];
            const bool is_allowed = allows(access, fabric::rights_for(request));
            fabric::RdmaOperation commit(*client.queue_pair, request);
            EXPECT_EQ((co_await commit).status,
                      is_allowed ? Status::success : Status::remote_access_error)
                << static_cast<int>(access) << ", " << i;
            co_await client.meet();
          });
    }
  }
}

// A registration of one range has no commit, and no operation but WRITE and APPEND ends with one.
TEST_P(FabricAccess, ACommitOfWhatHasNoneIsUnsupported) {
  PERDURA_NEEDS(commits);
  std::vector<std::function<WorkRequest(const Side&, RemoteKey)>> all{
      [](const Side&, RemoteKey key) {
        return WorkRequest{.opcode = Opcode::commit, .remote = {key, 0}};
      },
      [](const Side& client, RemoteKey key) {
        return WorkRequest{.opcode = Opcode::write,
                           .flags = kCommits,
                           .local = client.local(0, 8),
                           .remote = {key, 0}};
      },
      [](const Side& client, RemoteKey) {
        return WorkRequest{.opcode = Opcode::send, .flags = kCommits, .local = client.local(0, 8)};
      },
      [](const Side& client, RemoteKey key) {
        return WorkRequest{.opcode = Opcode::read,
                           .flags = kCommits,
                           .local = client.local(0, 8),
                           .remote = {key, 0}};
      }};
  for (const auto& make_request : all) {
    connected(
        on_persistent_memory(), [](Side& server) -> Task<> { co_await server.meet(); },
        [&](Side& client) -> Task<> {
          const WorkRequest request = make_request(client, client.there.key);
          fabric::RdmaOperation commit(*client.queue_pair, request);
          EXPECT_EQ((co_await commit).status, Status::unsupported) << to_string(request.opcode);
          co_await client.meet();
        });
  }
}

TEST_P(FabricAccess, ACommitOfARegistrationThatIsGoneIsRefused) {
  PERDURA_NEEDS(commits);
  for (const bool was_written : {false, true}) {
    RemoteKey key;
    connected(
        on_persistent_memory(),
        [&](Side& server) -> Task<> {
          Committable file(server, Access::remote_all);
          key = file.map.key;
          co_await server.meet();
          co_await server.meet();
          server.thread.endpoint.deregister_memory(file.map);
          co_await server.meet();
          co_await server.meet();
        },
        [&](Side& client) -> Task<> {
          co_await client.meet();
          if (was_written) {
            EXPECT_TRUE(co_await client.queue_pair->write(client.local(0, 8), {key, 0}));
          }
          co_await client.meet();
          co_await client.meet();
          EXPECT_EQ((co_await client.queue_pair->commit(key)).status, Status::remote_access_error);
          // The connection has broken, and a commit must not end well.
          EXPECT_EQ((co_await client.queue_pair->commit(key)).status, Status::flushed);
          co_await client.meet();
        });
  }
}

// Data that was written may have been unmapped since, or mapped elsewhere. A commit persists the part
// that is still mapped, and leaves the rest to the owner.
TEST_P(FabricAccess, ACommitSkipsHoles) {
  PERDURA_NEEDS(commits);
  RemoteKey key;
  connected(
      on_persistent_memory(),
      [&](Side& server) -> Task<> {
        fabric::Endpoint& endpoint = server.thread.endpoint;
        Committable file(server, Access::remote_all);
        key = file.map.key;
        co_await server.meet();
        co_await server.meet();
        co_await endpoint.unmap_extents(file.map, 100, 500);
        co_await server.meet();
        co_await server.meet();
        co_await endpoint.unmap_extents(file.map, 0, 1024);
        co_await server.meet();
        co_await server.meet();
      },
      [&](Side& client) -> Task<> {
        co_await client.meet();
        EXPECT_TRUE(co_await client.queue_pair->write(client.local(0, 1024), {key, 0}));
        co_await client.meet();
        co_await client.meet();
        EXPECT_TRUE(co_await client.queue_pair->commit(key));
        EXPECT_TRUE(co_await client.queue_pair->write(client.local(0, 100), {key, 0}));
        co_await client.meet();
        co_await client.meet();
        EXPECT_TRUE(co_await client.queue_pair->commit(key));
        co_await client.meet();
      });
}

// Writers of several processes at once, more ranges than a device keeps: each sees its own.
TEST_P(FabricContention, CommitsOfSeveralQueuePairsAllEnd) {
  PERDURA_NEEDS(commits);
  constexpr std::uint32_t kWriters = 4;
  constexpr std::uint64_t kRounds = 200;
  const auto platform = make({.node_count = 3});
  const auto barrier = platform->create_barrier(kWriters + 1);
  RemoteKey key;
  platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
    auto region = thread.node.create_region("file", 64 * KiB, Medium::pm);
    const std::array whole{Extent{0, 0, 64 * KiB}};
    const ExtentMap map = thread.endpoint.register_extents(*region, whole, Access::remote_all);
    key = map.key;
    std::vector<std::unique_ptr<fabric::QueuePair>> peers;
    for (std::uint32_t i = 0; i < kWriters; ++i) {
      peers.push_back((co_await thread.endpoint.next_connection())->accept({}, {}));
    }
    co_await barrier->arrive_and_wait();
    for (std::uint64_t i = 0; i < kWriters * kRounds; ++i) {
      EXPECT_EQ(region->load(i * 72 + 8), i + 1);
    }
  });
  for (std::uint32_t i = 0; i < kWriters; ++i) {
    platform->start(1 + i % 2, static_cast<fabric::Port>(10 + i), mode(),
                    [&, i](Thread& thread) -> Task<> {
                      auto region = thread.node.create_region("data", 4096, Medium::dram);
                      const auto memory = thread.endpoint.register_memory(*region, Access::local);
                      auto peer = co_await thread.endpoint.connect({0, 1}, {}, {});
                      for (std::uint64_t n = 0; n < kRounds; ++n) {
                        const std::uint64_t number = n * kWriters + i;
                        region->store(0, number + 1);
                        const Completion done = co_await peer.queue_pair->write(
                            memory.local(0, 8), {key, number * 72 + 8}, {.commit = n % 3 == 0});
                        EXPECT_TRUE(done);
                        if (n % 3 != 1) continue;
                        EXPECT_TRUE(co_await peer.queue_pair->commit(key));
                      }
                      EXPECT_TRUE(co_await peer.queue_pair->commit(key));
                      co_await barrier->arrive_and_wait();
                    });
  }
  platform->run();
}

}  // namespace perdura::conformance
