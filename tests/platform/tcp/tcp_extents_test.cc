// Accesses through registrations of extents over sockets, of which a part arrives or is sent when
// the extents change or the connection breaks. What holds on all platforms is tested in
// tests/platform/conformance.
#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <thread>

#include "tests/platform/tcp/two_ends.h"

namespace perdura::test {

using fabric::Access;
using fabric::Completion;
using fabric::Extent;
using fabric::ExtentMap;
using fabric::RangeFault;
using fabric::RangeFaults;
using fabric::Status;
using pmem::Medium;

namespace {

class TcpExtents : public TwoEnds {};
INSTANTIATE_TEST_SUITE_P(Modes, TcpExtents, kBothModes, mode_name);

// The server's end, whose peer uses its region through extents.
struct ExtentsEnd : SocketEnd {
  ExtentsEnd(Thread& on, Bytes size, std::initializer_list<Extent> extents)
      : SocketEnd(on, Medium::dram, size),
        map(on.endpoint.register_extents(*region, extents, Access::remote_all)) {
    key = map.key;
  }
  ExtentMap map;
  RangeFaults faults;
};

// The value of all bytes of a range; nothing if they differ.
std::optional<int> only_value(const pmem::Region& region, Bytes offset, std::size_t size) {
  const auto found = contents(region, offset, size);
  const auto differs = [&](std::byte value) { return value != found.front(); };
  if (std::any_of(found.begin(), found.end(), differs)) return std::nullopt;
  return std::to_integer<int>(found.front());
}

Task<> yield_times(int times) {
  for (int i = 0; i < times; ++i) co_await yield();
}

}  // namespace

// Of this WRITE one poll stores less than a tenth, and the change comes after some polls.
TEST_P(TcpExtents, AWriteThatArrivesInPartsTakesEffectBeforeOrAfterAChange) {
  constexpr std::uint32_t kSize = 8 * MiB + 5;
  constexpr int kTimes = 10;
  run(
      [&](Thread& thread) -> Task<> {
        ExtentsEnd end(thread, 2 * kSize, {{0, 0, kSize}});
        co_await end.accept();
        std::array<int, 2> before{0, 0};
        for (int i = 1; i <= kTimes; ++i) {
          co_await meet();
          co_await yield_times(i - 1);
          co_await thread.endpoint.map_extent(end.map, {0, i % 2 * Bytes{kSize}, kSize});
          co_await meet();
          std::array<int, 2> after{-1, -1};
          for (const Bytes place : {0, 1}) {
            const auto value = only_value(*end.region, place * kSize, kSize);
            EXPECT_TRUE(value.has_value()) << "a part of a WRITE is at place " << place;
            after.at(place) = value.value_or(-1);
          }
          EXPECT_EQ(std::count(after.begin(), after.end(), i), 1);
          EXPECT_TRUE(after[0] == before[0] || after[1] == before[1]);
          before = after;
          co_await meet();
        }
      },
      [&](Thread& thread) -> Task<> {
        SocketEnd end(thread, Medium::dram, kSize);
        co_await end.connect();
        for (int i = 1; i <= kTimes; ++i) {
          end.region->write(0, bytes(kSize, i));
          auto write = end.peer->write(end.memory.local(0, kSize), end.there);
          write.post();
          co_await meet();
          EXPECT_TRUE(co_await write);
          co_await meet();
          co_await meet();
        }
      });
}

// The reader takes nothing until the extents have changed, and the answers are longer than what its
// socket takes. The change does not wait for it, and it reads nothing of the memory's next owner.
TEST_P(TcpExtents, AReadIsAnsweredAsBeforeOrAfterAChange) {
  constexpr std::uint32_t kSize = 16 * MiB;
  constexpr int kReads = 4;
  constexpr int kPoison = 3;
  std::atomic<bool> asked{false};
  std::atomic<bool> changed{false};
  run(
      [&](Thread& thread) -> Task<> {
        ExtentsEnd end(thread, 2 * kSize, {{0, 0, kSize}});
        end.region->write(0, bytes(kSize, 1));
        end.region->write(kSize, bytes(kSize, 2));
        co_await end.accept();
        while (!asked) co_await yield();
        co_await yield_times(10);
        co_await thread.endpoint.map_extent(end.map, {0, kSize, kSize});
        end.region->write(0, bytes(kSize, kPoison));
        changed = true;
        co_await meet();
      },
      [&](Thread& thread) -> Task<> {
        SocketEnd end(thread, Medium::dram, kReads * kSize);
        co_await end.connect();
        std::deque<fabric::RdmaOperation> reads;
        for (Bytes i = 0; i < kReads; ++i) {
          const auto into = end.memory.local(i * kSize, kSize);
          reads
              .emplace_back(*end.peer,
                            fabric::WorkRequest{
                                .opcode = fabric::Opcode::read, .local = into, .remote = end.there})
              .post();
        }
        co_await yield_times(3);
        asked = true;
        while (!changed) std::this_thread::yield();
        for (Bytes i = 0; i < kReads; ++i) {
          fabric::RdmaOperation& read = reads[i];
          EXPECT_TRUE(co_await read);
          const int value = only_value(*end.region, i * kSize, kSize).value_or(-1);
          EXPECT_TRUE(value == 1 || value == 2) << "READ " << i << " found " << value;
        }
        co_await meet();
      });
}

// A READ whose turn comes after its memory has been unmapped is refused, as if it came later.
TEST_P(TcpExtents, AReadInLineFindsNoUnmappedMemory) {
  constexpr std::uint32_t kSize = 16 * MiB;
  enum class End { unmapped, deregistered, destroyed };
  for (const End way : {End::unmapped, End::deregistered, End::destroyed}) {
    std::atomic<bool> asked{false};
    std::atomic<bool> changed{false};
    run(
        [&](Thread& thread) -> Task<> {
          ExtentsEnd end(thread, kSize, {{0, 0, kSize}});
          co_await end.accept();
          while (!asked) co_await yield();
          co_await yield_times(10);
          if (way == End::unmapped) co_await thread.endpoint.unmap_extents(end.map, 0, 1);
          if (way == End::deregistered) thread.endpoint.deregister_memory(end.map);
          if (way == End::destroyed) end.region.reset();
          changed = true;
          EXPECT_EQ((co_await end.completions.next()).status, Status::disconnected);
          co_await meet();
        },
        [&](Thread& thread) -> Task<> {
          SocketEnd end(thread, Medium::dram, kSize);
          co_await end.connect();
          auto first = end.peer->read(end.memory.local(0, kSize), end.there);
          auto second = end.peer->read(end.memory.local(0, kSize), end.there);
          first.post();
          second.post();
          co_await yield_times(3);
          asked = true;
          while (!changed) std::this_thread::yield();
          const Completion one = co_await first;
          const Completion two = co_await second;
          EXPECT_TRUE(one || one.status == Status::remote_access_error);
          EXPECT_EQ(two.status, one ? Status::remote_access_error : Status::flushed);
          end.peer.reset();
          co_await meet();
        });
  }
}

TEST_P(TcpExtents, WhatABrokenConnectionLeavesBegunHasNoEffect) {
  constexpr std::uint32_t kSize = 64 * MiB;  // more than sockets take
  for (const bool appends : {true, false}) {
    std::atomic<bool> given_up{false};
    run(
        [&](Thread& thread) -> Task<> {
          ExtentsEnd end(thread, kSize + kWord, {{0, 0, kSize}});
          thread.endpoint.allow_appends(end.map, kSize, end.faults);
          co_await end.accept();
          co_await meet();
          while (!given_up) std::this_thread::yield();  // nobody serves the client meanwhile
          EXPECT_EQ((co_await end.completions.next()).status, Status::disconnected);
          EXPECT_EQ(only_value(*end.region, 0, kSize + kWord), 0);
          co_await meet();
        },
        [&](Thread& thread) -> Task<> {
          SocketEnd end(thread, Medium::dram, kSize);
          end.region->write(0, bytes(kSize, 7));
          co_await end.connect();
          co_await meet();
          {
            const auto from = end.memory.local(0, kSize);
            auto operation =
                appends ? end.peer->append(from, end.there.key) : end.peer->write(from, end.there);
            operation.post();
            co_await yield_times(2);
          }
          given_up = true;
          co_await meet();
        });
  }
}

namespace {

// Maps [from, to) of a registration by extents of 1000 bytes, which lie in the region in the
// opposite order.
constexpr Bytes kStep = 1000;
Bytes place_of(Bytes at) { return MiB - (at / kStep + 1) * kStep; }
Task<> map_steps(Thread& thread, const ExtentMap& map, Bytes from, Bytes to) {
  for (Bytes at = from; at < to; at += kStep) {
    co_await thread.endpoint.map_extent(map, {at, place_of(at), kStep});
  }
}

}  // namespace

// All that the connection posts after the APPEND waits with it. The range fault is reported once,
// and again when the extents have changed and do not suffice.
TEST_P(TcpExtents, ALongAppendWaitsForManyExtents) {
  constexpr std::uint32_t kSize = 301 * kStep - 3;
  constexpr Bytes kElsewhere = 1 * GiB;  // where the word after the size is mapped
  run(
      [&](Thread& thread) -> Task<> {
        ExtentsEnd end(thread, MiB + 2 * kWord, {{kElsewhere, MiB + kWord, kWord}});
        thread.endpoint.allow_appends(end.map, MiB, end.faults);
        co_await end.accept();
        EXPECT_EQ(co_await end.faults.next(), (RangeFault{end.map.key, kSize}));
        co_await yield_times(20);
        co_await map_steps(thread, end.map, 0, 100 * kStep);
        EXPECT_EQ(co_await end.faults.next(), (RangeFault{end.map.key, kSize}));
        co_await yield_times(20);
        EXPECT_EQ(only_value(*end.region, 0, end.region->size()), 0)
            << "an APPEND that waits, or a WRITE after it, has had an effect";
        co_await map_steps(thread, end.map, 100 * kStep, 301 * kStep);
        co_await meet();
        EXPECT_EQ(end.region->load(MiB), kSize);
        EXPECT_EQ(end.region->load(MiB + kWord), 77U);
        for (Bytes at = 0; at < kSize; at += kStep) {
          const std::size_t part = std::min(kStep, kSize - at);
          EXPECT_EQ(only_value(*end.region, place_of(at), part), 5) << at;
        }
        EXPECT_EQ(co_await end.faults.next(), (RangeFault{end.map.key, kSize + 8}));
        co_await map_steps(thread, end.map, 301 * kStep, 302 * kStep);
        co_await meet();
      },
      [&](Thread& thread) -> Task<> {
        SocketEnd end(thread, Medium::dram, MiB);
        end.region->write(0, bytes(kSize, 5));
        end.region->store(512 * KiB, 77);
        co_await end.connect();
        auto append = end.peer->append(end.memory.local(0, kSize), end.there.key);
        auto write = end.peer->write(end.memory.local(512 * KiB, 8), end.there + kElsewhere);
        append.post();
        write.post();
        const Completion done = co_await append;
        EXPECT_TRUE(done);
        EXPECT_EQ(done.old_value, 0U);
        EXPECT_TRUE(co_await write);
        co_await meet();
        const Completion more = co_await end.peer->append(end.memory.local(0, 8), end.there.key);
        EXPECT_EQ(more.old_value, kSize);
        co_await meet();
      });
}

TEST_P(TcpExtents, AnAppendThatWaitsIsRefusedWhenItsMemoryGoes) {
  for (const bool region_goes : {false, true}) {
    run(
        [&](Thread& thread) -> Task<> {
          ExtentsEnd end(thread, MiB, {});
          thread.endpoint.allow_appends(end.map, 0, end.faults);
          co_await end.accept();
          co_await end.faults.next();
          if (region_goes) {
            end.region.reset();
          } else {
            thread.endpoint.deregister_memory(end.map);
          }
          EXPECT_EQ((co_await end.completions.next()).status, Status::disconnected);
          co_await meet();
        },
        [&](Thread& thread) -> Task<> {
          SocketEnd end(thread);
          co_await end.connect();
          EXPECT_EQ((co_await end.peer->append(end.memory.local(0, 8), end.there.key)).status,
                    Status::remote_access_error);
          co_await meet();
        });
  }
}

}  // namespace perdura::test
