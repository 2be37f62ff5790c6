// What the successor of a dead process may rely on (docs/restart.md): once it runs, nothing of the
// connections of its predecessor takes effect any more.
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "platform/pmem/sim/timeline.h"
#include "platform/sim/machine.h"
#include "platform/sim/sim_platform.h"
#include "tests/platform/sim/power.h"

namespace perdura::sim::test {
namespace {

using fabric::Access;
using fabric::Opcode;
using fabric::WorkRequest;
using pmem::Medium;

constexpr std::uint64_t kAdditions = 6;

// Where operations of the client leave something in the server's pool, in this order: a counter, a
// word that is swapped, one that is written by ATOMIC WRITE, what a WRITE and a SEND bring. Nothing
// shares a line with anything else.
struct Layout {
  Bytes counter = 0;
  Bytes swapped = kCacheLine;
  Bytes word = 2 * kCacheLine;
  Bytes written = 3 * kCacheLine;
  Bytes written_size = 0;
  Bytes message_size = 0;
  Bytes message() const { return written + written_size; }
  Bytes end() const { return message() + message_size; }
};
constexpr Layout kLong{.written_size = 8 * KiB, .message_size = 4 * KiB};
constexpr Layout kShort{.written_size = 4 * kCacheLine, .message_size = 2 * kCacheLine};

Profile with_all_operations() {
  Profile profile = testbed();
  profile.nic.flush = profile.nic.flush_persistence = profile.nic.atomic_write = true;
  return profile;
}

Task<> for_ever() {
  for (;;) co_await sleep_for(std::chrono::seconds(1));
}

// The first word of each line.
using Lines = std::vector<std::uint64_t>;
Lines lines_of(Node& node, const Layout& layout) {
  const auto pool = node.open_region("pool");
  Lines lines;
  for (Bytes at = 0; at < layout.end(); at += kCacheLine) lines.push_back(pool->load(at));
  return lines;
}

// Whose lines differ.
void add_differing(const Lines& a, const Lines& b, const Layout& layout,
                   std::set<std::string>& kinds) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    const Bytes at = i * kCacheLine;
    kinds.insert(at < layout.written ? "atomic" : at < layout.message() ? "WRITE" : "SEND");
  }
}

struct Cluster {
  explicit Cluster(const Layout& its_layout) : layout(its_layout) {}

  void start() {
    platform.local_node(0)->create_region("pool", layout.end(), Medium::pm);
    platform.start_service(0, 5, CompletionMode::polling,
                           [this](Thread& thread) { return serve(thread); });
  }
  Task<> serve(Thread& thread) {
    const auto pool = thread.node.open_region("pool");
    const auto memory = thread.endpoint.register_memory(*pool, Access::remote_all);
    const auto queue = thread.endpoint.create_receive_queue(1);
    const auto size = static_cast<std::uint32_t>(layout.message_size);
    queue->post(memory.local(layout.message(), size), 0);
    key = memory.key;
    fabric::CompletionQueue completions;
    const auto client =
        (co_await thread.endpoint.next_connection())
            ->accept({.receive_queue = queue.get(), .completions = &completions}, {});
    co_await for_ever();
  }
  // One operation of each kind, posted together; `busy` is called before and behind them.
  Task<> use(Thread& thread, std::function<void(bool)> busy) {
    const Bytes size = std::max(layout.written_size, layout.message_size);
    const auto region = thread.node.create_region("data", 2 * size, Medium::dram);
    std::fill_n(region->data(), size, std::byte{1});
    const auto memory = thread.endpoint.register_memory(*region, Access::local);
    const auto made = co_await thread.endpoint.connect({0, 5}, {}, {});
    const auto local = [&](Bytes from, Bytes length) {
      return memory.local(from, static_cast<std::uint32_t>(length));
    };
    const auto there = [&](Bytes at) { return fabric::RemoteAddress{key, at}; };
    std::vector<WorkRequest> requests(
        kAdditions,
        {.opcode = Opcode::fetch_and_add, .remote = there(layout.counter), .operand = 1});
    requests.push_back({.opcode = Opcode::compare_and_swap,
                        .remote = there(layout.swapped),
                        .operand = 1,
                        .expected = 0});
    requests.push_back({.opcode = Opcode::write,
                        .local = local(0, layout.written_size),
                        .remote = there(layout.written)});
    requests.push_back({.opcode = Opcode::flush,
                        .placement = fabric::Placement::persistence,
                        .remote = there(layout.written),
                        .flush_length = layout.written_size});
    requests.push_back({.opcode = Opcode::send, .local = local(0, layout.message_size)});
    requests.push_back({.opcode = Opcode::read,
                        .local = local(size, layout.written_size),
                        .remote = there(layout.written)});
    requests.push_back(
        {.opcode = Opcode::atomic_write, .remote = there(layout.word), .operand = 1});
    busy(true);
    std::deque<fabric::RdmaOperation> operations;
    for (const WorkRequest& request : requests) {
      operations.emplace_back(*made.queue_pair, request).post();
    }
    for (fabric::RdmaOperation& operation : operations) static_cast<void>(co_await operation);
    ended = true;
    busy(false);
    co_await for_ever();
  }
  // The server, and a client while whose operations are under way failures are tried.
  void start_with_client(Failure& failure) {
    start();
    failure.enable(false);
    platform.start_service(1, 1, CompletionMode::polling, [this, &failure](Thread& thread) {
      return use(thread, [&failure](bool busy) { failure.enable(busy); });
    });
    platform.start(2, 1, CompletionMode::polling,
                   [](Thread&) -> Task<> { co_await sleep_for(Microseconds(200)); });
  }
  // The next process of the server: it looks at the pool before it does anything else.
  void start_successor() {
    platform.start_service(0, 5, CompletionMode::polling, [this](Thread& thread) -> Task<> {
      began = thread.executor.now();
      found = lines_of(thread.node, layout);
      co_await for_ever();
    });
  }
  Lines lines() { return lines_of(*platform.local_node(0), layout); }

  Layout layout;
  fabric::RemoteKey key;
  bool ended = false;  // all operations
  std::optional<Time> began;
  Lines found;
  SimPlatform platform{with_all_operations(), 3};
};

// What the device has begun is there before the successor begins, and the rest never comes.
TEST(SimRestart, NothingOfAnOldConnectionComesOnceTheSuccessorRuns) {
  std::set<std::string> ended_meanwhile;
  explore_failures({}, [&](Failure& failure) {
    SCOPED_TRACE(failure.text());
    Cluster cluster(kLong);
    SimPlatform& platform = cluster.platform;
    platform.track_durability({PersistenceDomain::dmp, false});
    cluster.start_with_client(failure);
    Time gone{};
    failure.watch(platform, [&](pmem::Choices&) {
      platform.kill(0);
      gone = platform.gone_at(0);
      const Lines at_death = cluster.lines();
      cluster.start_successor();
      platform.at(gone, [&, at_death] {
        add_differing(at_death, cluster.lines(), cluster.layout, ended_meanwhile);
      });
    });
    platform.run();
    if (!failure.happened()) {
      EXPECT_TRUE(cluster.ended);
      return;
    }
    ASSERT_TRUE(cluster.began);
    EXPECT_GE(*cluster.began, gone);
    EXPECT_EQ(cluster.lines(), cluster.found) << "something of an old connection came later";
  });
  EXPECT_EQ(ended_meanwhile, (std::set<std::string>{"atomic", "SEND", "WRITE"}))
      << "what the device had begun at some moments";
}

// The successor sees all of it, so it can make it durable without having looked at it.
TEST(SimRestart, WhatTheSuccessorFlushesIsDurable) {
  std::uint64_t compared = 0;
  for (const bool ddio : {false, true}) {
    explore_failures({}, [&](Failure& failure) {
      SCOPED_TRACE(failure.text());
      Cluster cluster(kShort);
      SimPlatform& platform = cluster.platform;
      platform.track_durability({PersistenceDomain::dmp, ddio});
      cluster.start_with_client(failure);
      const auto fail_power = [&] {
        const Lines before = cluster.lines();
        pmem::LeastChoices least;
        platform.fail_power(0, least);
        EXPECT_EQ(cluster.lines(), before);
        ++compared;
      };
      failure.watch(platform, [&](pmem::Choices&) {
        platform.kill(0);
        platform.start_service(0, 5, CompletionMode::polling, [&](Thread& thread) -> Task<> {
          thread.node.open_region("pool")->persist(0, cluster.layout.end());
          platform.at(thread.executor.now(), fail_power);
          co_await for_ever();
        });
      });
      platform.run();
    });
  }
  EXPECT_GT(compared, 20U);
}

// A thread runs ahead of the engine's time, and another one of its process has seen what it did. It
// is there when the process has died, and what is stored later comes behind it.
TEST(SimRestart, WhatAnotherThreadHasSeenIsThere) {
  std::vector<std::byte> memory(kCacheLine);
  pmem::sim::Timeline timeline(memory.data());
  pmem::sim::StoringThread dies;
  pmem::sim::StoringThread lives;
  const auto at = [](int us) { return Time(Microseconds(us)); };
  const auto filled = [](int with) { return std::vector(kWord, static_cast<std::byte>(with)); };
  using Writer = pmem::sim::Timeline::Writer;
  const auto found = [&](int when) {
    std::vector<std::byte> word(kWord);
    timeline.device_read(0, word, {at(when), {}});
    return word;
  };
  timeline.begin_device_read(at(0));  // so that changes are remembered
  timeline.change(at(0), 0, filled(1), Writer::cpu, {at(300), {}}, &dies);
  timeline.withdraw(dies, at(100), at(300));
  EXPECT_EQ(found(99), filled(0));
  EXPECT_EQ(found(100), filled(1));
  timeline.change(at(200), 0, filled(2), Writer::cpu, {at(210), {}}, &lives);
  EXPECT_EQ(found(209), filled(1));
  EXPECT_EQ(found(250), filled(2));
}

TEST(SimRestart, AKeyOfThePredecessorMeansNothing) {
  Cluster cluster(kShort);
  SimPlatform& platform = cluster.platform;
  cluster.start();
  platform.start(2, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    while (cluster.key.value == 0) co_await sleep_for(Microseconds(1));
    platform.kill(0);
    platform.start_service(0, 6, CompletionMode::polling, [](Thread& successor) -> Task<> {
      const auto client = (co_await successor.endpoint.next_connection())->accept({}, {});
      co_await for_ever();
    });
    const auto region = thread.node.create_region("data", kCacheLine, Medium::dram);
    const auto memory = thread.endpoint.register_memory(*region, Access::local);
    const auto made = co_await thread.endpoint.connect({0, 6}, {}, {});
    const auto read = co_await made.queue_pair->read(memory.local(0, kWord), {cluster.key, 0});
    EXPECT_EQ(read.status, fabric::Status::remote_access_error);
  });
  platform.run();
}

// After a power failure the device begins anew.
TEST(SimRestart, NothingOfAnOldConnectionComesAfterAPowerFailure) {
  for (const Images images : {Images::least, Images::most}) {
    explore_failures({.images = images}, [&](Failure& failure) {
      SCOPED_TRACE(failure.text());
      Cluster cluster(kLong);
      SimPlatform& platform = cluster.platform;
      platform.track_durability({PersistenceDomain::mhp, false});
      cluster.start_with_client(failure);
      Lines left;
      failure.watch(platform, [&](pmem::Choices& choices) {
        platform.fail_power(0, choices);
        left = cluster.lines();
        cluster.start_successor();
      });
      platform.run();
      if (!failure.happened()) return;
      EXPECT_EQ(cluster.found, left);
      EXPECT_EQ(cluster.lines(), left);
    });
  }
}

// The same where times decide nothing: in random orders of all that devices do.
TEST(SimRestart, NothingOfAnOldConnectionComesLaterInAnyOrder) {
  constexpr std::uint64_t kOrders = 500;
  std::set<std::string> ended_by_the_death;
  for (std::uint64_t order = 0; order < kOrders; ++order) {
    SCOPED_TRACE(order);
    pmem::RandomChoices choices(order);
    Cluster cluster(kShort);
    SimPlatform& platform = cluster.platform;
    cluster.start();
    bool posting = false;
    platform.start_service(1, 1, CompletionMode::polling, [&](Thread& thread) {
      return cluster.use(thread, [&](bool busy) {
        if (!busy) return;
        platform.relax(choices);
        posting = true;
      });
    });
    platform.start(2, 1, CompletionMode::polling, [&](Thread&) -> Task<> {
      while (!posting) co_await sleep_for(Microseconds(1));
      for (std::uint64_t i = order % 40; i > 0; --i) co_await yield();
      const Lines before = cluster.lines();
      platform.kill(0);
      const Lines left = cluster.lines();
      add_differing(before, left, cluster.layout, ended_by_the_death);
      for (int i = 0; i < 200; ++i) co_await yield();
      EXPECT_EQ(cluster.lines(), left) << "something of an old connection came later";
    });
    platform.run();
  }
  EXPECT_EQ(ended_by_the_death, (std::set<std::string>{"atomic", "SEND", "WRITE"}));
}

}  // namespace
}  // namespace perdura::sim::test
