// What only socket endpoints do; their conformance tests are in conformance.cc.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "platform/base/error.h"
#include "platform/fabric/tcp/pieces.h"
#include "platform/fabric/tcp/sockets.h"
#include "platform/shm/shm_platform.h"
#include "tests/platform/tcp/two_ends.h"

namespace perdura {

using fabric::Access;
using fabric::Connection;
using fabric::LocalBuffer;
using fabric::LocalPieces;
using fabric::Status;
using pmem::Medium;

namespace {

using test::bytes;
using test::contents;
using End = test::SocketEnd;

class TcpSockets : public test::TwoEnds {};
INSTANTIATE_TEST_SUITE_P(Modes, TcpSockets, test::kBothModes, test::mode_name);

}  // namespace

// --- rendezvous -------------------------------------------------------------------------------

TEST_P(TcpSockets, APortBelongsToOneEndpointOfItsNode) {
  run(
      [&](Thread& thread) -> Task<> {
        EXPECT_THROW(static_cast<void>(thread.node.create_socket_endpoint(thread, 1)), UsageError);
        auto other = thread.node.create_socket_endpoint(thread, 2);
        other.reset();
        other = thread.node.create_socket_endpoint(thread, 2);
        EXPECT_EQ(other->address(), (fabric::Address{0, 2}));
        co_return;
      },
      [](Thread&) -> Task<> { co_return; });
}

// A published port at which nobody listens, somebody who does not answer, or another endpoint: the
// initiator goes on looking until the right one is published.
TEST_P(TcpSockets, AStalePublishedPortIsPassedOver) {
  for (const int kind : {0, 1, 2}) {
    const auto mute = fabric::tcp::listen_on("127.0.0.1");
    run(
        [&](Thread& thread) -> Task<> {
          thread.executor.spawn([](std::unique_ptr<fabric::Endpoint> endpoint) -> Task<> {
            co_await endpoint->next_connection();
            ADD_FAILURE() << "it was meant for another one";
          }(thread.node.create_socket_endpoint(thread, 2)));
          co_await yield();  // it listens
          if (kind == 0) {
            std::ofstream(published()) << "1 1234\n";
          } else if (kind == 1) {
            std::ofstream(published()) << std::hex << mute.port << " 1234\n";
          } else {
            unsigned port = 0;
            std::ifstream(platform_->job_directory() + "/node-0.socket-2") >> std::hex >> port;
            std::ofstream(published()) << std::hex << port << " 1234\n";
          }
          co_await meet();
          co_await meet();
          if (kind == 1) {
            while (!fabric::tcp::accept_from(mute.file.get())) co_await sleep_for(Microseconds(10));
          }
          fabric::CompletionQueue completions;
          auto peer = (co_await thread.endpoint.next_connection())
                          ->accept({.completions = &completions}, {});
          EXPECT_EQ((co_await completions.next()).status, Status::disconnected);
        },
        [&](Thread& thread) -> Task<> {
          co_await meet();
          bool connected = false;
          thread.executor.spawn([](fabric::Endpoint* endpoint, bool* done) -> Task<> {
            const Connection connection = co_await endpoint->connect(kServer, {}, {});
            EXPECT_EQ(connection.status, Status::success);
            *done = true;
          }(&thread.endpoint, &connected));
          co_await yield();
          co_await meet();
          while (!connected) co_await sleep_for(Microseconds(10));
        });
  }
}

// --- transfer ---------------------------------------------------------------------------------

// A CPU of the memory's node stores what arrives, so nothing has left the caches before a flush.
TEST_P(TcpSockets, WhatArrivesCountsAsStoresOfTheNode) {
  run(
      [&](Thread& thread) -> Task<> {
        End end(thread, Medium::pm);
        co_await end.accept();
        end.receives->post({end.memory.local(1024, 8), end.memory.local(2048, 92)}, 1);
        co_await meet();
        co_await meet();
      },
      [&](Thread& thread) -> Task<> {
        End end(thread);
        co_await end.connect();
        co_await meet();
        const Node& server = *platform_->local_node(kServer.node);
        pmem::Writes before = server.pm_writes();
        const auto stored = [&] {
          const pmem::Writes now = server.pm_writes();
          pmem::Writes since = now;
          since -= before;
          before = now;
          EXPECT_EQ(since.one_sided, pmem::WriteCounts{});
          return since.local_store;
        };
        end.region->write(0, bytes(100, 1));
        EXPECT_TRUE(co_await end.peer->write(end.memory.local(0, 100), end.there + 60));
        EXPECT_EQ(stored(), (pmem::WriteCounts{.stores = 1,
                                               .field_bits = 800,
                                               .bytes_issued = 100,
                                               .bytes_programmed = 100,
                                               .bits_flipped = 100}));
        EXPECT_TRUE(co_await end.peer->send(end.memory.local(0, 100)));
        EXPECT_EQ(stored().bytes_issued, 100U);
        EXPECT_TRUE(co_await end.peer->read(end.memory.local(0, 100), end.there));
        EXPECT_EQ(stored(), pmem::WriteCounts{});
        co_await meet();
      });
}

// Both ends send to a peer that has posted no receive buffer, and both get answers meanwhile.
TEST_P(TcpSockets, AMessageThatWaitsForABufferKeepsNoAnswerBack) {
  const auto side = [&](End& end) -> Task<> {
    end.region->write(0, bytes(100, 7));
    auto write = end.peer->write(end.memory.local(0, 100), end.there + 4096);
    auto send = end.peer->send({end.memory.local(0, 60), end.memory.local(60, 40)});
    auto behind = end.peer->write(end.memory.local(0, 8), end.there + 8192);
    write.post();
    send.post();
    behind.post();
    EXPECT_TRUE(co_await write);
    co_await meet();
    EXPECT_EQ(end.region->load(8192), 0U) << "overtook the message before it";
    EXPECT_FALSE(end.completions.try_next().has_value());
    co_await meet();
    end.receives->post({end.memory.local(1001, 10), end.memory.local(2000, 90)}, 5);
    const auto message = co_await end.completions.next();
    EXPECT_EQ(message.status, Status::success);
    EXPECT_EQ(message.buffer_id, 5U);
    EXPECT_EQ(message.length, 100U);
    EXPECT_EQ(contents(*end.region, 1001, 10), bytes(10, 7));
    EXPECT_EQ(contents(*end.region, 2000, 90), bytes(90, 7));
    EXPECT_TRUE(co_await send);
    EXPECT_TRUE(co_await behind);
    co_await meet();
  };
  run(
      [&](Thread& thread) -> Task<> {
        End end(thread);
        co_await end.accept();
        co_await side(end);
      },
      [&](Thread& thread) -> Task<> {
        End end(thread);
        co_await end.connect();
        co_await side(end);
      });
}

// The buffer may be posted when the message has arrived and the WRITE behind it has in part: that
// needs no buffer, and no later one is posted.
TEST_P(TcpSockets, AWriteBehindAMessageThatWaitedNeedsNoBuffer) {
  constexpr std::uint32_t kSize = 900 * KiB + 3;
  constexpr int kTimes = 20;
  run(
      [&](Thread& thread) -> Task<> {
        End end(thread, Medium::dram, 2 * kSize);
        co_await end.accept();
        for (int i = 0; i < kTimes; ++i) {
          co_await meet();
          for (int turn = 0; turn < i; ++turn) co_await yield();
          end.receives->post(end.memory.local(0, 100), 1);
          EXPECT_EQ((co_await end.completions.next()).length, 100U);
          co_await meet();
          EXPECT_EQ(contents(*end.region, 200, kSize), bytes(kSize, i));
        }
      },
      [&](Thread& thread) -> Task<> {
        End end(thread, Medium::dram, 2 * kSize);
        co_await end.connect();
        for (int i = 0; i < kTimes; ++i) {
          end.region->write(0, bytes(kSize, i));
          auto send = end.peer->send(end.memory.local(0, 100));
          auto write = end.peer->write(end.memory.local(0, kSize), end.there + 200);
          send.post();
          write.post();
          co_await meet();
          EXPECT_TRUE(co_await send);
          EXPECT_TRUE(co_await write);
          co_await meet();
        }
      });
}

// More than the receiver keeps waits with the sender, and all of it arrives once there are buffers.
TEST_P(TcpSockets, ManyLongMessagesWaitForBuffers) {
  constexpr std::uint32_t kSize = 300 * KiB + 3;
  constexpr int kMessages = 12;
  run(
      [&](Thread& thread) -> Task<> {
        End end(thread, Medium::dram, 2 * kSize);
        co_await end.accept();
        co_await meet();
        for (int i = 0; i < kMessages; ++i) {
          end.receives->post(end.memory.local(1, kSize), 1);
          EXPECT_EQ((co_await end.completions.next()).length, kSize);
          EXPECT_EQ(contents(*end.region, 1, kSize), bytes(kSize, i));
        }
        co_await meet();
      },
      [&](Thread& thread) -> Task<> {
        End end(thread, Medium::dram, kMessages * Bytes{kSize});
        co_await end.connect();
        std::deque<fabric::RdmaOperation> sends;
        for (int i = 0; i < kMessages; ++i) {
          const Bytes at = static_cast<Bytes>(i) * kSize;
          end.region->write(at, bytes(kSize, i));
          sends
              .emplace_back(*end.peer, fabric::WorkRequest{.opcode = fabric::Opcode::send,
                                                           .local = end.memory.local(at, kSize)})
              .post();
        }
        co_await meet();
        for (auto& send : sends) EXPECT_TRUE(co_await send);
        co_await meet();
      });
}

TEST_P(TcpSockets, ARegionThatIsGoneIsOutOfReach) {
  run(
      [&](Thread& thread) -> Task<> {
        End end(thread);
        co_await end.accept();
        end.memory = {};
        end.region.reset();
        co_await meet();
        EXPECT_EQ((co_await end.completions.next()).status, Status::disconnected);
        co_await meet();
      },
      [&](Thread& thread) -> Task<> {
        End end(thread);
        co_await end.connect();
        co_await meet();
        EXPECT_EQ((co_await end.peer->write(end.memory.local(0, 8), end.there)).status,
                  Status::remote_access_error);
        co_await meet();
      });
}

// A task that is destroyed in the middle of an operation takes the operation's buffers with it, of
// which the peer has a part.
TEST_P(TcpSockets, AnOperationThatIsGivenUpHalfwayEndsTheConnection) {
  constexpr std::uint32_t kSize = 64 * MiB;  // more than sockets take
  std::atomic<bool> given_up{false};
  run(
      [&](Thread& thread) -> Task<> {
        End end(thread, Medium::dram, kSize);
        co_await end.accept();
        co_await meet();
        while (!given_up) std::this_thread::yield();  // nobody serves the client meanwhile
        EXPECT_EQ((co_await end.completions.next()).status, Status::disconnected);
        co_await meet();
      },
      [&](Thread& thread) -> Task<> {
        End end(thread, Medium::dram, kSize);
        co_await end.connect();
        co_await meet();
        {
          auto never_begun = end.peer->write(end.memory.local(0, 8), end.there);
          never_begun.post();
        }
        EXPECT_TRUE(end.peer->connected());
        {
          auto write = end.peer->write(end.memory.local(0, kSize), end.there);
          write.post();
          co_await yield();
        }
        EXPECT_FALSE(end.peer->connected());
        given_up = true;
        EXPECT_EQ((co_await end.completions.next()).status, Status::disconnected);
        co_await meet();
      });
}

// --- threads that sleep -------------------------------------------------------------------------

TEST(TcpEvents, AThreadThatSleepsIsWokenByWhatArrives) {
  ShmOptions options;
  options.node_count = 2;
  ShmPlatform platform(std::move(options));
  std::atomic<runtime::Doorbell*> bell{nullptr};
  platform.start(0, 1, CompletionMode::event, test::over_sockets([&](Thread& thread) -> Task<> {
                   bell = &static_cast<host::ThreadExecutor&>(thread.executor).doorbell();
                   End end(thread);
                   co_await end.accept();
                   for (std::uint64_t id = 0; id < 3; ++id) {
                     end.receives->post(end.memory.local(id * 64, 64), id);
                   }
                   for (std::uint64_t id = 0; id < 3; ++id) {
                     EXPECT_EQ((co_await end.completions.next()).buffer_id, id);
                   }
                   EXPECT_EQ((co_await end.completions.next()).status, Status::disconnected);
                 }));
  platform.start(1, 1, CompletionMode::polling, test::over_sockets([&](Thread& thread) -> Task<> {
                   End end(thread);
                   const auto server_sleeps = [&]() -> Task<> {
                     while (bell == nullptr || bell.load()->sleeping == 0) co_await yield();
                   };
                   co_await server_sleeps();
                   co_await end.connect();
                   for (int i = 0; i < 3; ++i) {
                     co_await server_sleeps();
                     EXPECT_TRUE(co_await end.peer->send(end.memory.local(0, 8)));
                   }
                   co_await server_sleeps();
                   end.peer.reset();
                 }));
  platform.run();
}

// --- copies of pieces ---------------------------------------------------------------------------

// Wherever a copy is interrupted, it is at the end of a word of its region, or of a piece.
TEST(TcpPieces, ACopyIsNotInterruptedWithinAWord) {
  pmem::Region region("pieces", Medium::dram, nullptr, 4096, nullptr, nullptr);
  const LocalPieces pieces(LocalBuffer{&region, 3, 21}, LocalBuffer{&region, 101, 2},
                           LocalBuffer{&region, 1005, 100});
  const auto is_end = [&](Bytes at) {
    for (const LocalBuffer& piece : pieces.all()) {
      if (at <= piece.length) return at == 0 || at == piece.length || (piece.offset + at) % 8 == 0;
      at -= piece.length;
    }
    return false;
  };
  for (Bytes position = 0; position < pieces.length(); ++position) {
    for (std::size_t length = 8; position + length < pieces.length(); ++length) {
      const std::size_t part = fabric::tcp::whole_words(pieces, position, length);
      EXPECT_LE(part, length);
      EXPECT_LT(length - part, 8U);
      EXPECT_TRUE(part == 0 || is_end(position + part)) << position << ", " << length;
    }
  }
}

}  // namespace perdura
