// A port takes no more than its link carries, however many nodes send to it, in either direction.
#include <gtest/gtest.h>

#include <vector>

#include "platform/sim/sim_platform.h"
#include "tests/support/platforms.h"

namespace perdura::sim {
namespace {

using fabric::Access;
using fabric::Opcode;
using fabric::RemoteAddress;

constexpr Bytes kMessage = 64 * KiB;
constexpr std::uint32_t kMessages = 8;  // of each peer

// PCIe and memory that never limit what the link can bring.
Profile testbed() {
  Profile profile = load_profile(perdura::test::profile_path("mcas-connectx5"));
  profile.nic.pcie_bandwidth *= 16;
  profile.pm.write_bandwidth *= 16;
  profile.pm.read_bandwidth *= 16;
  return profile;
}

struct Outcome {
  Picoseconds elapsed{};  // from the first request to the last completion
  Picoseconds first{};    // of the first message of the first peer
};

// Node 0 has memory, to which each of the other nodes WRITEs at once, or which each of the others
// has, and from which node 0 READs at once.
Outcome transfer(const Profile& profile, NodeId peers, Opcode opcode) {
  SimPlatform platform(profile, 1 + peers);
  const bool reads = opcode == Opcode::read;
  const Bytes size = peers * kMessage;
  std::vector<fabric::RemoteKey> keys(1 + peers);
  Outcome outcome;
  Time begin = Time::max();
  Time end{};
  const auto offer = [&](NodeId node) {
    platform.start_service(node, 0, CompletionMode::polling, [&, node](Thread& thread) -> Task<> {
      const auto region = thread.node.create_region("pm", size, pmem::Medium::pm);
      keys[node] = thread.endpoint.register_memory(*region, Access::remote_all).key;
      std::vector<std::unique_ptr<fabric::QueuePair>> accepted;
      for (;;) accepted.push_back((co_await thread.endpoint.next_connection())->accept({}, {}));
    });
  };
  const auto use = [&](NodeId node, NodeId of, std::uint32_t port, Bytes offset) {
    platform.start(node, port, CompletionMode::polling, [&, of, offset](Thread& thread) -> Task<> {
      const auto region =
          thread.node.create_region("local" + std::to_string(of), kMessage, pmem::Medium::dram);
      const auto memory = thread.endpoint.register_memory(*region, Access::local);
      const auto connection = co_await thread.endpoint.connect({of, 0}, {}, {});
      EXPECT_EQ(connection.status, fabric::Status::success);
      // All begin together.
      co_await sleep_for(Milliseconds(10) - (thread.executor.now() - Time{}));
      const Time first = thread.executor.now();
      begin = std::min(begin, first);
      for (std::uint32_t i = 0; i < kMessages; ++i) {
        const RemoteAddress there{keys[of], offset};
        if (reads) {
          EXPECT_TRUE(co_await connection.queue_pair->read(memory.local(0, kMessage), there));
        } else {
          EXPECT_TRUE(co_await connection.queue_pair->write(memory.local(0, kMessage), there));
        }
        if (i == 0 && outcome.first == Picoseconds{}) outcome.first = thread.executor.now() - first;
      }
      end = std::max(end, thread.executor.now());
    });
  };
  if (!reads) offer(0);
  for (NodeId peer = 1; peer <= peers; ++peer) {
    if (reads) offer(peer);
    if (reads) use(0, peer, peer, 0);
    if (!reads) use(peer, 0, 1, (peer - 1) * kMessage);
  }
  platform.run();
  outcome.elapsed = end - begin;
  return outcome;
}

class Port : public testing::TestWithParam<Opcode> {};

TEST_P(Port, TakesNoMoreThanItsLinkCarries) {
  const Profile profile = testbed();
  for (const NodeId peers : {1U, 2U, 4U, 7U}) {
    const Outcome outcome = transfer(profile, peers, GetParam());
    const Picoseconds of_link = transfer_time(peers * kMessages * kMessage, profile.link.bandwidth);
    EXPECT_GE(outcome.elapsed, of_link) << peers;
    // Beside the bytes there are headers, and the way of the first and the last message.
    if (peers == 1) continue;
    EXPECT_LT(outcome.elapsed, of_link * 5 / 4) << peers;
  }
}

// What nobody contends for takes as long as on a link that could take any number of senders.
TEST_P(Port, OfTheReceiverCostsALoneSenderNothing) {
  const Profile profile = testbed();
  const Outcome alone = transfer(profile, 1, GetParam());
  EXPECT_EQ(alone.elapsed % kMessages, Picoseconds{});
  EXPECT_EQ(alone.elapsed, alone.first * kMessages);
}

INSTANTIATE_TEST_SUITE_P(Opcodes, Port, testing::Values(Opcode::write, Opcode::read),
                         [](const auto& opcode) {
                           return opcode.param == Opcode::write ? "Writes" : "Reads";
                         });

}  // namespace
}  // namespace perdura::sim
