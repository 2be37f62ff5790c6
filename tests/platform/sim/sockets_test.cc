// Connections over TCP: the modelled Ethernet beside the RDMA device.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/platform/sim/power.h"

namespace perdura::sim::test {
namespace {

using pmem::Medium;

constexpr fabric::Port kPort = 7;

std::unique_ptr<fabric::Endpoint> sockets(Thread& thread) {
  return thread.node.create_socket_endpoint(thread, kPort);
}

// A server on node 0 that accepts one connection to its pool, over TCP or the RDMA device, and a
// client on node 1.
class Sockets : public testing::Test {
 protected:
  enum class Way : std::uint8_t { tcp, device };

  struct Client {
    fabric::QueuePair& peer;
    fabric::RemoteKey pool;
    fabric::MemoryRegion local;
  };
  using Use = std::function<Task<>(Client&)>;

  void run(Way way, const Use& use, Profile profile = testbed(),
           const std::function<void(SimPlatform&)>& prepare = {}) {
    SimPlatform platform(std::move(profile), 2);
    if (prepare) prepare(platform);
    platform.start_service(0, kPort, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto own = way == Way::tcp ? sockets(thread) : nullptr;
      fabric::Endpoint& endpoint = own ? *own : thread.endpoint;
      const auto pool = thread.node.create_region("pool", kPoolSize, Medium::pm);
      fabric::RemoteKey key;
      fabric::RangeFaults faults;
      if (appends_) {
        constexpr std::array kFile{fabric::Extent{0, 0, kSizeWord}};
        const auto map = endpoint.register_extents(*pool, kFile, fabric::Access::remote_all);
        endpoint.allow_appends(map, kSizeWord, faults);
        key = map.key;
      } else {
        key = endpoint.register_memory(*pool, fabric::Access::remote_all).key;
      }
      const auto request = co_await endpoint.next_connection();
      auto client = request->accept({}, std::as_bytes(std::span(&key, 1)));
      if (close_at_) {
        co_await sleep_for(*close_at_ - Executor::current().now());
        client.reset();
      }
      co_await sleep_for(std::chrono::seconds(1));
    });
    platform.start(1, kPort, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto own = way == Way::tcp ? sockets(thread) : nullptr;
      fabric::Endpoint& endpoint = own ? *own : thread.endpoint;
      const auto region = thread.node.create_region("local", kPoolSize, Medium::dram);
      const auto connection = co_await endpoint.connect({0, kPort}, {}, {});
      Client client{
          *connection.queue_pair, {}, endpoint.register_memory(*region, fabric::Access::local)};
      std::memcpy(&client.pool, connection.private_data.data(), sizeof client.pool);
      region->store(0, 1);
      co_await use(client);
    });
    platform.run();
  }

  std::optional<Time> close_at_;  // when the server closes the connection
  bool appends_ = false;          // the pool is a file to which the client may append
  static constexpr Bytes kSizeWord = 1024;
};

TEST_F(Sockets, ReadWhatWasWritten) {
  run(Way::tcp, [](Client& client) -> Task<> {
    const auto written = co_await client.peer.write(client.local.local(0, kWord), {client.pool, 0});
    EXPECT_TRUE(written);
    const auto read = co_await client.peer.read(client.local.local(kWord, kWord), {client.pool, 0});
    EXPECT_TRUE(read);
    EXPECT_EQ(client.local.region->load(kWord), 1U);
  });
}

// docs/accounting.md
TEST_F(Sockets, CountAsStoresOfTheCpuThatMakesThem) {
  const auto written = [&](Way way) {
    pmem::Writes writes;
    SimPlatform* running = nullptr;
    run(
        way,
        [&](Client& client) -> Task<> {
          co_await client.peer.write(client.local.local(0, kWord), {client.pool, 0});
          writes = running->local_node(0)->pm_writes();
        },
        testbed(), [&](SimPlatform& platform) { running = &platform; });
    return writes;
  };
  const pmem::Writes by_device = written(Way::device);
  EXPECT_EQ(by_device.one_sided.bytes_issued, kWord);
  EXPECT_EQ(by_device.local_store, pmem::WriteCounts{});
  const pmem::Writes by_cpu = written(Way::tcp);
  EXPECT_EQ(by_cpu.local_store.bytes_issued, kWord);
  EXPECT_EQ(by_cpu.one_sided, pmem::WriteCounts{});
}

TEST_F(Sockets, DoWhatSoftwareDoesForTheDeviceAndNothingElse) {
  Profile profile = testbed();
  profile.nic.flush = profile.nic.flush_persistence = profile.nic.atomic_write = true;
  const auto ends_as = [&](Way way, auto operation) {
    fabric::Status status{};
    run(
        way,
        [&](Client& client) -> Task<> {
          const fabric::Completion done = co_await operation(client);
          status = done.status;
        },
        profile);
    return status;
  };
  const auto flush = [](Client& client) {
    return client.peer.flush({client.pool, 0}, kWord, fabric::Placement::persistence);
  };
  const auto add = [](Client& client) { return client.peer.fetch_and_add({client.pool, 0}, 1); };
  const auto store = [](Client& client) { return client.peer.atomic_write({client.pool, 0}, 1); };
  EXPECT_EQ(ends_as(Way::device, flush), fabric::Status::success);
  EXPECT_EQ(ends_as(Way::tcp, flush), fabric::Status::unsupported);
  EXPECT_EQ(ends_as(Way::device, add), fabric::Status::success);
  EXPECT_EQ(ends_as(Way::tcp, add), fabric::Status::unsupported);
  EXPECT_EQ(ends_as(Way::device, store), fabric::Status::success);
  EXPECT_EQ(ends_as(Way::tcp, store), fabric::Status::unsupported);
}

// The server's CPU stores what comes over TCP. A READ behind it, which pushes what a device without
// DDIO has placed, pushes nothing out of the CPU's caches.
TEST_F(Sockets, StoreWithACpuWhoseCachesAreLost) {
  const auto is_kept = [&](Way way) {
    std::uint64_t word = 0;
    SimPlatform* running = nullptr;
    run(
        way,
        [&](Client& client) -> Task<> {
          co_await client.peer.write(client.local.local(0, kWord), {client.pool, 0});
          co_await client.peer.read(client.local.local(kWord, kWord), {client.pool, 0});
          running->at(Executor::current().now(), [&] {
            pmem::LeastChoices least;
            running->fail_power(0, least);
            word = running->local_node(0)->open_region("pool")->load(0);
          });
          co_await sleep_for(Microseconds(1));
        },
        testbed(),
        [&](SimPlatform& platform) {
          running = &platform;
          platform.track_durability({PersistenceDomain::dmp, false});
        });
    return word == 1;
  };
  EXPECT_TRUE(is_kept(Way::device));
  EXPECT_FALSE(is_kept(Way::tcp));
}

// The same for an APPEND: over TCP its data and the size may each be lost without the other, as two
// stores of a CPU may.
TEST_F(Sockets, AppendWithACpuWhoseCachesAreLost) {
  appends_ = true;
  const auto images = [&](Way way) {
    std::set<Image> found;
    SimPlatform* running = nullptr;
    pmem::Enumerator choices;
    while (choices.next()) {
      run(
          way,
          [&](Client& client) -> Task<> {
            const auto appended =
                co_await client.peer.append(client.local.local(0, kWord), client.pool);
            EXPECT_TRUE(appended);
            co_await client.peer.read(client.local.local(kWord, kWord), {client.pool, 0});
            running->at(Executor::current().now(), [&] {
              running->fail_power(0, choices);
              found.insert(image_of(*running, {0, kSizeWord / kWord}));
            });
            co_await sleep_for(Microseconds(1));
          },
          testbed(),
          [&](SimPlatform& platform) {
            running = &platform;
            platform.track_durability({PersistenceDomain::dmp, false});
          });
    }
    return found;
  };
  EXPECT_EQ(images(Way::device), (std::set<Image>{{1, kWord}}));
  EXPECT_EQ(images(Way::tcp), (std::set<Image>{{0, 0}, {1, 0}, {0, kWord}, {1, kWord}}));
}

// A device ends what it has begun. A program that has closed its socket takes nothing out of it any
// more, so what comes later gets nowhere: whenever that is, a WRITE that was not placed then stays
// away.
TEST_F(Sockets, PlaceNothingBehindTheEndOfTheirConnection) {
  Profile profile = testbed();
  std::size_t placed = 0;
  std::size_t closed_before = 0;
  for (std::int64_t after = 0; after < 100; ++after) {
    close_at_ = Time(Microseconds(60 + after));
    std::uint64_t at_close = 0;
    std::uint64_t in_the_end = 0;
    run(
        Way::tcp,
        [&](Client& client) -> Task<> {
          auto write = client.peer.write(client.local.local(0, kWord), {client.pool, 0});
          write.post();
          co_await sleep_for(Milliseconds(1));
        },
        profile,
        [&](SimPlatform& platform) {
          const auto look = [&platform] {
            return platform.local_node(0)->open_region("pool")->load(0);
          };
          // The server's last steps take less than that.
          platform.at(*close_at_ + Nanoseconds(500), [&at_close, look] { at_close = look(); });
          platform.at(Time(Microseconds(900)), [&in_the_end, look] { in_the_end = look(); });
        });
    EXPECT_EQ(at_close, in_the_end) << "closed at " << 60 + after << " us";
    (in_the_end == 1 ? placed : closed_before) += 1;
  }
  EXPECT_GT(placed, 0U);
  EXPECT_GT(closed_before, 0U);
}

TEST_F(Sockets, TakeTheTimesOfTheEthernet) {
  const auto round_trip = [&](const EthernetProfile& ethernet) {
    Profile profile = testbed();
    profile.ethernet = ethernet;
    Picoseconds taken{};
    run(
        Way::tcp,
        [&](Client& client) -> Task<> {
          const Time before = Executor::current().now();
          co_await client.peer.read(client.local.local(0, kWord), {client.pool, 0});
          taken = Executor::current().now() - before;
        },
        profile);
    return taken;
  };
  const EthernetProfile usual;
  EthernetProfile slow = usual;
  slow.stack += Microseconds(10);
  EXPECT_EQ(round_trip(slow), round_trip(usual) + 2 * Microseconds(10));
  slow.link.propagation += Microseconds(3);
  EXPECT_EQ(round_trip(slow), round_trip(usual) + 2 * Microseconds(13));
  EXPECT_GT(round_trip(usual), 2 * (usual.stack + usual.link.propagation) + usual.system_call);
}

}  // namespace
}  // namespace perdura::sim::test
