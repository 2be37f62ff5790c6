// The effect of each operation.
#include <cstring>

#include "tests/platform/conformance/conformance.h"

namespace perdura::conformance {

using fabric::Completion;
using fabric::Opcode;
using fabric::OperationFlags;
using fabric::Placement;
using fabric::ReceiveCompletion;
using fabric::Status;

TEST_P(FabricOperations, ReadFetchesRemoteMemory) {
  connected(
      [](Side& server) -> Task<> {
        server.region->write(1000, pattern(300));
        co_await server.meet();
        co_await server.meet();
      },
      [](Side& client) -> Task<> {
        co_await client.meet();
        const Completion done =
            co_await client.queue_pair->read(client.local(64, 300), client.there + 1000);
        EXPECT_EQ(done.status, Status::success);
        EXPECT_EQ(done.opcode, Opcode::read);
        EXPECT_EQ(contents(*client.region, 64, 300), pattern(300));
        EXPECT_EQ(contents(*client.region, 63, 1), std::vector(1, std::byte{0}));
        EXPECT_EQ(contents(*client.region, 364, 1), std::vector(1, std::byte{0}));
        co_await client.meet();
      });
}

TEST_P(FabricOperations, WriteChangesRemoteMemoryAndNothingBesides) {
  connected(
      [](Side& server) -> Task<> {
        co_await server.meet();
        for (std::uint32_t n = 1; n <= 70; ++n) {
          const Bytes at = n * 128 + n % 11;  // every alignment
          EXPECT_EQ(contents(*server.region, at, n), pattern(n, n)) << n << " bytes";
          EXPECT_EQ(contents(*server.region, at - 1, 1).front(), std::byte{0});
          EXPECT_EQ(contents(*server.region, at + n, 1).front(), std::byte{0});
        }
      },
      [](Side& client) -> Task<> {
        for (std::uint32_t n = 1; n <= 70; ++n) {
          client.region->write(n % 5, pattern(n, n));
          const Completion done = co_await client.queue_pair->write(
              client.local(n % 5, n), client.there + (n * 128 + n % 11));
          EXPECT_EQ(done.status, Status::success);
        }
        // A READ completes when earlier WRITEs are visible.
        co_await client.queue_pair->read(client.local(0, 8), client.there);
        co_await client.meet();
      });
}

TEST_P(FabricOperations, SendLandsInTheBufferThatWasPostedFirst) {
  connected(
      [](Side& server) -> Task<> {
        for (std::uint64_t id = 0; id < 3; ++id) {
          const ReceiveCompletion message = co_await server.completions.next();
          EXPECT_EQ(message.status, Status::success);
          EXPECT_EQ(message.queue_pair, server.queue_pair.get());
          EXPECT_EQ(message.buffer_id, id);
          EXPECT_EQ(message.buffer.offset, id * kMessage);
          EXPECT_EQ(text_of(message.buffer), "message " + std::to_string(id));
          EXPECT_FALSE(message.immediate.has_value());
        }
        co_await server.meet();
      },
      [](Side& client) -> Task<> {
        for (int i = 0; i < 3; ++i) {
          client.region->write(0, bytes_of("message " + std::to_string(i)));
          const Completion done = co_await client.queue_pair->send(client.local(0, 9));
          EXPECT_EQ(done.status, Status::success);
          EXPECT_EQ(done.opcode, Opcode::send);
        }
        co_await client.meet();
      });
}

TEST_P(FabricOperations, WriteWithImmediateConsumesABufferAndCarries32Bits) {
  PERDURA_NEEDS(write_with_immediate);
  connected(
      [](Side& server) -> Task<> {
        const ReceiveCompletion message = co_await server.completions.next();
        EXPECT_EQ(message.status, Status::success);
        EXPECT_EQ(message.immediate, 0xDEADBEEFU);
        EXPECT_EQ(message.buffer_id, 0U);
        EXPECT_EQ(contents(*server.region, 512, 100), pattern(100));
        co_await server.meet();
      },
      [](Side& client) -> Task<> {
        client.region->write(0, pattern(100));
        const Completion done = co_await client.queue_pair->write_with_immediate(
            client.local(0, 100), client.there + 512, 0xDEADBEEF);
        EXPECT_EQ(done.status, Status::success);
        co_await client.meet();
      });
}

TEST_P(FabricOperations, CompareAndSwapSwapsOnlyWhatItExpects) {
  PERDURA_NEEDS(atomics);
  with_idle_server([](Side& client) -> Task<> {
    fabric::QueuePair& peer = *client.queue_pair;
    Completion done = co_await peer.compare_and_swap(client.there + 16, 0, 5);
    EXPECT_EQ(done.status, Status::success);
    EXPECT_EQ(done.old_value, 0U);
    done = co_await peer.compare_and_swap(client.there + 16, 4, 9);
    EXPECT_EQ(done.status, Status::success);
    EXPECT_EQ(done.old_value, 5U);
    done = co_await peer.compare_and_swap(client.there + 16, 5, 6);
    EXPECT_EQ(done.old_value, 5U);
    co_await peer.read(client.local(0, 8), client.there + 16);
    EXPECT_EQ(client.region->load(0), 6U);
  });
}

TEST_P(FabricOperations, FetchAndAddReturnsTheValueBefore) {
  PERDURA_NEEDS(atomics);
  with_idle_server([](Side& client) -> Task<> {
    fabric::QueuePair& peer = *client.queue_pair;
    EXPECT_EQ((co_await peer.fetch_and_add(client.there + 8, 40)).old_value, 0U);
    EXPECT_EQ((co_await peer.fetch_and_add(client.there + 8, 2)).old_value, 40U);
    const std::uint64_t minus_one = ~std::uint64_t{0};
    EXPECT_EQ((co_await peer.fetch_and_add(client.there + 8, minus_one)).old_value, 42U);
    EXPECT_EQ((co_await peer.fetch_and_add(client.there + 8, 0)).old_value, 41U);
  });
}

TEST_P(FabricOperations, AtomicWriteReplacesAWordWhereTheDeviceCan) {
  with_idle_server([](Side& client) -> Task<> {
    const Completion done =
        co_await client.queue_pair->atomic_write(client.there + 24, 0x1122334455667788);
    if (!client.thread.endpoint.capabilities().atomic_write) {
      EXPECT_EQ(done.status, Status::unsupported);
      co_return;
    }
    EXPECT_EQ(done.status, Status::success);
    co_await client.queue_pair->read(client.local(0, 8), client.there + 24);
    EXPECT_EQ(client.region->load(0), 0x1122334455667788U);
  });
}

TEST_P(FabricOperations, WhatTheDeviceLacksIsUnsupported) {
  for (const Opcode opcode :
       {Opcode::write_with_immediate, Opcode::compare_and_swap, Opcode::fetch_and_add}) {
    with_idle_server([opcode](Side& client) -> Task<> {
      const auto can = client.thread.endpoint.capabilities();
      const bool has =
          opcode == Opcode::write_with_immediate ? can.write_with_immediate : can.atomics;
      const Completion done = co_await fabric::RdmaOperation(
          *client.queue_pair, {.opcode = opcode, .remote = client.there, .operand = 1});
      EXPECT_EQ(done.status, has ? Status::success : Status::unsupported) << to_string(opcode);
      EXPECT_EQ(client.queue_pair->connected(), has);
    });
  }
}

TEST_P(FabricOperations, FlushSucceedsWhereTheDeviceCan) {
  PairOptions options;
  options.memory = pmem::Medium::pm;
  for (const Placement placement : {Placement::global_visibility, Placement::persistence}) {
    with_idle_server(options, [placement](Side& client) -> Task<> {
      const auto can = client.thread.endpoint.capabilities();
      const bool supported =
          placement == Placement::persistence ? can.flush_persistence : can.flush;
      co_await client.queue_pair->write(client.local(0, 200), client.there + 100);
      const Completion done = co_await client.queue_pair->flush(client.there + 100, 200, placement);
      EXPECT_EQ(done.status, supported ? Status::success : Status::unsupported);
    });
  }
}

TEST_P(FabricOperations, MessagesMayBeEmpty) {
  connected(
      [](Side& server) -> Task<> {
        ReceiveCompletion message = co_await server.completions.next();
        EXPECT_EQ(message.status, Status::success);
        EXPECT_EQ(message.buffer.length, 0U);
        if (server.thread.endpoint.capabilities().write_with_immediate) {
          message = co_await server.completions.next();
          EXPECT_EQ(message.immediate, 7U);
        }
        co_await server.meet();
      },
      [](Side& client) -> Task<> {
        fabric::QueuePair& peer = *client.queue_pair;
        EXPECT_TRUE(co_await peer.read(client.local(0, 0), client.there));
        EXPECT_TRUE(co_await peer.write(client.local(0, 0), client.there));
        EXPECT_TRUE(co_await peer.send(client.local(0, 0)));
        if (client.thread.endpoint.capabilities().write_with_immediate) {
          EXPECT_TRUE(co_await peer.write_with_immediate(client.local(0, 0), client.there, 7));
        }
        co_await client.meet();
      });
}

TEST_P(FabricOperations, LargeMessagesArriveWhole) {
  constexpr std::uint32_t kSize = 3 * MiB + 5;
  const auto platform = make();
  const auto barrier = platform->create_barrier(2);
  fabric::RemoteKey key;
  platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
    auto region = thread.node.create_region("large", 2 * kSize, pmem::Medium::dram);
    const auto memory = thread.endpoint.register_memory(*region, fabric::Access::remote_all);
    key = memory.key;
    auto receives = thread.endpoint.create_receive_queue(1);
    receives->post(memory.local(kSize, kSize), 1);
    fabric::CompletionQueue completions;
    auto request = co_await thread.endpoint.next_connection();
    auto queue_pair =
        request->accept({.receive_queue = receives.get(), .completions = &completions}, {});
    const ReceiveCompletion message = co_await completions.next();
    EXPECT_EQ(message.buffer.length, kSize);
    EXPECT_EQ(contents(*region, 0, kSize), pattern(kSize, 1));
    EXPECT_EQ(contents(*region, kSize, kSize), pattern(kSize, 2));
    co_await barrier->arrive_and_wait();
  });
  platform->start(1, 1, mode(), [&](Thread& thread) -> Task<> {
    auto region = thread.node.create_region("large", kSize, pmem::Medium::dram);
    const auto memory = thread.endpoint.register_memory(*region, fabric::Access::local);
    EXPECT_GE(thread.endpoint.capabilities().max_message, kSize);
    auto connection = co_await thread.endpoint.connect({0, 1}, {}, {});
    region->write(0, pattern(kSize, 1));
    EXPECT_TRUE(co_await connection.queue_pair->write(memory.local(0, kSize), {key, 0}));
    region->write(0, pattern(kSize, 2));
    EXPECT_TRUE(co_await connection.queue_pair->send(memory.local(0, kSize)));
    co_await barrier->arrive_and_wait();
  });
  platform->run();
}

TEST_P(FabricOperations, InlineDataIsTakenWhenTheOperationIsPosted) {
  connected(
      [](Side& server) -> Task<> {
        for (int i = 0; i < 10; ++i) {
          const ReceiveCompletion message = co_await server.completions.next();
          EXPECT_EQ(text_of(message.buffer), "inline " + std::to_string(i));
        }
        co_await server.meet();
      },
      [](Side& client) -> Task<> {
        EXPECT_GE(client.thread.endpoint.capabilities().max_inline, 64U);
        for (int i = 0; i < 10; ++i) {
          client.region->write(0, bytes_of("inline " + std::to_string(i)));
          auto send = client.queue_pair->send(client.local(0, 8), {.inlined = true});
          send.post();
          client.region->write(0, bytes_of("reused!!"));
          EXPECT_TRUE(co_await send);
        }
        co_await client.meet();
      });
}

// Also by one that has to wait for others to complete.
TEST_P(FabricOperations, InlineDataOfAnOperationThatWaitsInLineIsTakenWhenItIsPosted) {
  PairOptions options;
  options.send_depth = 1;
  connected(
      options,
      [](Side& server) -> Task<> {
        for (int i = 0; i < 10; ++i) {
          const ReceiveCompletion message = co_await server.completions.next();
          EXPECT_EQ(text_of(message.buffer), "inline " + std::to_string(i));
        }
        co_await server.meet();
      },
      [](Side& client) -> Task<> {
        for (int i = 0; i < 10; ++i) {
          client.region->write(0, bytes_of("inline " + std::to_string(i)));
          auto read = client.queue_pair->read(client.local(512, 8), client.there);
          auto send = client.queue_pair->send(client.local(0, 8), {.inlined = true});
          read.post();
          send.post();
          client.region->write(0, bytes_of("reused!!"));
          EXPECT_TRUE(co_await send);
          EXPECT_TRUE(co_await read);
        }
        co_await client.meet();
      });
}

TEST_P(FabricOperations, UnsignaledOperationsTakeEffectBeforeLaterOnes) {
  with_idle_server([](Side& client) -> Task<> {
    for (std::uint64_t i = 1; i <= 200; ++i) {
      client.region->store(0, i);
      client.queue_pair->post_unsignaled({.opcode = Opcode::write,
                                          .flags = {.inlined = true},
                                          .local = client.local(0, 8),
                                          .remote = client.there + 8 * (i % 50)});
      client.region->store(0, 0);
      if (i % 50 != 0) continue;
      EXPECT_TRUE(co_await client.queue_pair->read(client.local(512, 400), client.there));
      EXPECT_EQ(client.region->load(512), i);
      for (Bytes k = 1; k < 50; ++k) EXPECT_EQ(client.region->load(512 + 8 * k), i - 50 + k);
    }
  });
}

TEST_P(FabricOperations, FencedOperationsWork) {
  PERDURA_NEEDS(atomics);
  with_idle_server([](Side& client) -> Task<> {
    const OperationFlags fenced{.fenced = true};
    auto add = client.queue_pair->fetch_and_add(client.there, 3);
    auto read = client.queue_pair->read(client.local(64, 8), client.there, fenced);
    // The data of the fenced WRITE come from what the READ before it fetches.
    auto write = client.queue_pair->write(client.local(64, 8), client.there + 8, fenced);
    add.post();
    read.post();
    write.post();
    EXPECT_TRUE(co_await write);
    EXPECT_TRUE(co_await read);
    EXPECT_TRUE(co_await add);
    EXPECT_TRUE(co_await client.queue_pair->read(client.local(128, 8), client.there + 8));
    EXPECT_EQ(client.region->load(128), 3U);
  });
}

}  // namespace perdura::conformance
