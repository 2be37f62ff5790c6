// What nodes send and receive, and how much memory their regions take (docs/accounting.md).
#include "tests/platform/conformance/conformance.h"

namespace perdura::conformance {

using fabric::Status;
using fabric::Traffic;
using pmem::Medium;
using pmem::MemoryUse;

namespace {

// Of one node, as all nodes together know it.
Traffic traffic_of(Platform& platform, NodeId node) {
  Traffic sum;
  for (NodeId id = 0; id < platform.node_count(); ++id) {
    const fabric::TrafficByNode known = platform.local_node(id)->traffic();
    if (const auto found = known.find(node); found != known.end()) sum += found->second;
  }
  return sum;
}

// Of the nodes of connected() between two calls.
struct Exchange {
  Traffic server;
  Traffic client;
};

Exchange operator-(Exchange after, const Exchange& before) {
  after.server -= before.server;
  after.client -= before.client;
  return after;
}

}  // namespace

// Real platforms count payload. A model counts what its devices send, headers and acknowledgments
// included: never less, and what one end sends the other receives.
TEST_P(NodeAccounting, EachOperationCountsAtBothEnds) {
  const auto platform = make();
  std::unique_ptr<Platform::Barrier> barrier = platform->create_barrier(2);
  const auto now = [&] { return Exchange{traffic_of(*platform, 0), traffic_of(*platform, 1)}; };
  const auto expect = [&](const char* what, const Exchange& measured, Traffic client) {
    SCOPED_TRACE(what);
    EXPECT_EQ(measured.client.sent, measured.server.received);
    EXPECT_EQ(measured.client.received, measured.server.sent);
    if (!platform->modelled()) {
      EXPECT_EQ(measured.client, client);
      return;
    }
    EXPECT_GT(measured.client.sent, client.sent);
    EXPECT_GT(measured.client.received, client.received);
  };
  platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
    Side side(thread);
    side.barrier = barrier.get();
    prepare(side, {});
    co_await accept(&side, {});
    co_await side.meet();
  });
  platform->start(1, 1, mode(), [&](Thread& thread) -> Task<> {
    Side side(thread);
    side.barrier = barrier.get();
    prepare(side, {});
    co_await connect(&side, {0, 1}, {});
    fabric::QueuePair& peer = *side.queue_pair;
    Exchange before = now();
    const auto measured = [&] {
      const Exchange after = now();
      const Exchange difference = after - before;
      before = after;
      return difference;
    };
    EXPECT_EQ((co_await peer.write(side.local(0, 5000), side.there)).status, Status::success);
    expect("WRITE", measured(), {5000, 0});
    EXPECT_EQ((co_await peer.read(side.local(0, 7000), side.there)).status, Status::success);
    expect("READ", measured(), {0, 7000});
    EXPECT_EQ((co_await peer.send(side.local(0, 200))).status, Status::success);
    expect("SEND", measured(), {200, 0});
    if (GetParam().can.write_with_immediate) {
      const auto written = co_await peer.write_with_immediate(side.local(0, 100), side.there, 1);
      EXPECT_EQ(written.status, Status::success);
      expect("WRITE_WITH_IMM", measured(), {100, 0});
    }
    if (GetParam().can.atomics) {
      EXPECT_EQ((co_await peer.compare_and_swap(side.there, 0, 1)).status, Status::success);
      if (!platform->modelled()) expect("CAS", measured(), {16, 8});
      measured();
      EXPECT_EQ((co_await peer.fetch_and_add(side.there, 1)).status, Status::success);
      if (!platform->modelled()) expect("FAA", measured(), {8, 8});
      measured();
    }
    // An operation that fails has exchanged nothing, where only payload counts.
    const fabric::RemoteAddress nowhere{{~0U}, 0};
    EXPECT_NE((co_await peer.read(side.local(0, 64), nowhere)).status, Status::success);
    if (!platform->modelled()) expect("refused", measured(), {0, 0});
    co_await side.meet();
  });
  platform->run();
}

TEST_P(NodeAccounting, MemoryIsThatOfTheRegionsAtTheirPeak) {
  const auto platform = make();
  platform->start(1, 1, mode(), [&](Thread& thread) -> Task<> {
    Node& node = thread.node;
    const MemoryUse at_first = node.peak_memory();
    const auto more = [&] {
      const MemoryUse now = node.peak_memory();
      return MemoryUse{now.dram - at_first.dram, now.pm - at_first.pm};
    };
    auto small = node.create_region("small", 64 * KiB, Medium::dram);
    auto large = node.create_region("large", 256 * KiB, Medium::dram);
    EXPECT_EQ(more(), (MemoryUse{320 * KiB, 0}));
    large.reset();
    // There is room for it now.
    large = node.create_region("large", 128 * KiB, Medium::dram);
    EXPECT_EQ(more(), (MemoryUse{320 * KiB, 0}));

    auto store = node.create_region("store", 64 * KiB, Medium::pm);
    const Bytes peak = at_first.pm > 64 * KiB ? 0 : 64 * KiB - at_first.pm;
    EXPECT_EQ(more(), (MemoryUse{320 * KiB, peak}));
    // It is in use whether or not it is open, and counts once.
    store.reset();
    store = node.open_region("store");
    const auto again = node.open_region("store");
    EXPECT_EQ(more(), (MemoryUse{320 * KiB, peak}));
    store.reset();
    node.remove_region("store");
    const auto other = node.create_region("other", 64 * KiB, Medium::pm);
    EXPECT_EQ(more(), (MemoryUse{320 * KiB, peak})) << "the first was removed";
    co_return;
  });
  platform->run();
  EXPECT_EQ(platform->local_node(0)->peak_memory().dram, 0U) << "each node counts its own";
}

}  // namespace perdura::conformance
