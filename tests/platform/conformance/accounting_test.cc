// What writes to persistent memory are counted as. The numbers are the same on every platform.
#include <cstring>

#include "tests/platform/conformance/conformance.h"

namespace perdura::conformance {

using pmem::Medium;
using pmem::Region;
using pmem::WordLayout;
using pmem::WriteCounts;
using pmem::Writes;

namespace {

std::string describe(const WriteCounts& c) {
  std::string text;
  const auto add = [&text](const char* name, std::uint64_t n) {
    text += std::string(name) + " " + std::to_string(n) + ", ";
  };
  add("stores", c.stores);
  add("flushes", c.flushes);
  add("fences", c.fences);
  add("field bits", c.field_bits);
  add("issued", c.bytes_issued);
  add("programmed", c.bytes_programmed);
  add("flipped", c.bits_flipped);
  add("lines", c.lines);
  add("media", c.media_bytes);
  return text;
}

void expect_counts(const WriteCounts& actual, const WriteCounts& expected) {
  EXPECT_EQ(describe(actual), describe(expected));
}

// What all nodes together wrote between two calls.
class Difference {
 public:
  explicit Difference(Platform& platform) : platform_(platform), before_(now()) {}
  Writes take() {
    const Writes current = now();
    Writes difference = current;
    difference -= before_;
    before_ = current;
    return difference;
  }

 private:
  Writes now() const {
    Writes sum;
    for (NodeId id = 0; id < platform_.node_count(); ++id) {
      sum += platform_.local_node(id)->pm_writes();
    }
    return sum;
  }
  Platform& platform_;
  Writes before_;
};

}  // namespace

TEST_P(PmemAccounting, LocalStoresInEveryUnit) {
  const auto platform = make({.node_count = 1});
  platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("pm", 64 * KiB, Medium::pm);
    Difference writes(*platform);

    region->store(0, 0x00FF0000000000FF);
    expect_counts(writes.take().local_store, {.stores = 1,
                                              .field_bits = 64,
                                              .bytes_issued = 8,
                                              .bytes_programmed = 2,
                                              .bits_flipped = 16});
    // The same value again: issued, not programmed.
    region->store(0, 0x00FF0000000000FF);
    expect_counts(writes.take().local_store, {.stores = 1, .field_bits = 64, .bytes_issued = 8});

    // Of the fields of 8, 24 and 32 bits only the second changes.
    region->store(0, 0x00FF0000000001FF, WordLayout{{8, 24, 32}});
    expect_counts(writes.take().local_store, {.stores = 1,
                                              .field_bits = 24,
                                              .bytes_issued = 8,
                                              .bytes_programmed = 1,
                                              .bits_flipped = 1});

    // 100 bytes of zeros become 100 bytes of which one in four is 3.
    std::vector<std::byte> data(100);
    for (std::size_t i = 0; i < data.size(); i += 4) data[i] = std::byte{3};
    region->write(1001, data);
    expect_counts(writes.take().local_store, {.stores = 1,
                                              .field_bits = 800,
                                              .bytes_issued = 100,
                                              .bytes_programmed = 25,
                                              .bits_flipped = 50});

    // Bytes 1001 to 1100 touch the lines from 960, 1024 and 1088 on.
    region->flush(1001, 100);
    expect_counts(writes.take().local_store, {.flushes = 3, .lines = 3});
    region->drain();
    expect_counts(writes.take().local_store, {.fences = 1});
    region->persist(4096, 1);
    expect_counts(writes.take().local_store, {.flushes = 1, .fences = 1, .lines = 1});

    // Streamed lines need no flush to reach the memory controller.
    region->write_streaming(8192, std::vector(128, std::byte{1}));
    expect_counts(writes.take().local_store, {.stores = 1,
                                              .field_bits = 1024,
                                              .bytes_issued = 128,
                                              .bytes_programmed = 128,
                                              .bits_flipped = 128,
                                              .lines = 2});

    std::uint64_t expected = 0;
    EXPECT_TRUE(region->compare_exchange(16384, expected, 7));
    expect_counts(writes.take().local_store, {.stores = 1,
                                              .field_bits = 64,
                                              .bytes_issued = 8,
                                              .bytes_programmed = 1,
                                              .bits_flipped = 3});
    expected = 1;
    EXPECT_FALSE(region->compare_exchange(16384, expected, 8));
    static_cast<void>(region->load(0));
    static_cast<void>(contents(*region, 0, 4096));
    EXPECT_EQ(writes.take(), Writes{});
    co_return;
  });
  platform->run();
}

TEST_P(PmemAccounting, MediaLinesAreCountedWhenTheyLeaveTheBuffer) {
  const auto platform = make({.node_count = 1});
  platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("pm", MiB, Medium::pm);
    Difference writes(*platform);
    // 64 media lines fit; 36 more push out as many.
    for (Bytes line = 0; line < 100; ++line) region->flush(line * kMediaLine, 1);
    const WriteCounts counts = writes.take().local_store;
    EXPECT_EQ(counts.lines, 100U);
    EXPECT_EQ(counts.media_bytes, 36 * kMediaLine);
    co_return;
  });
  platform->run();
}

TEST_P(PmemAccounting, DramIsNotCounted) {
  const auto platform = make({.node_count = 1});
  platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("dram", 4096, Medium::dram);
    Difference writes(*platform);
    region->store(0, 1);
    region->write(64, pattern(100));
    region->write_streaming(256, pattern(100));
    region->persist(0, 4096);
    EXPECT_EQ(writes.take(), Writes{});
    co_return;
  });
  platform->run();
}

TEST_P(PmemAccounting, OneSidedWritesCountApartFromLocalStores) {
  const auto platform = make();
  const auto barrier = platform->create_barrier(2);
  fabric::RemoteKey key;
  platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("pm", 64 * KiB, Medium::pm);
    key = thread.endpoint.register_memory(*region, fabric::Access::remote_all).key;
    auto queue_pair = (co_await thread.endpoint.next_connection())->accept({}, {});
    co_await barrier->arrive_and_wait();
  });
  platform->start(1, 1, mode(), [&](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("dram", 4096, Medium::dram);
    const auto memory = thread.endpoint.register_memory(*region, fabric::Access::local);
    const auto connection = co_await thread.endpoint.connect({0, 1}, {}, {});
    fabric::QueuePair& peer = *connection.queue_pair;
    Difference writes(*platform);

    // 100 ones to bytes 60 to 159: the lines from 0, 64 and 128 on.
    region->write(0, std::vector(100, std::byte{1}));
    EXPECT_TRUE(co_await peer.write(memory.local(0, 100), {key, 60}));
    EXPECT_TRUE(co_await peer.read(memory.local(1024, 8), {key, 0}));
    Writes done = writes.take();
    expect_counts(done.local_store, {});
    expect_counts(done.one_sided, {.stores = 1,
                                   .field_bits = 800,
                                   .bytes_issued = 100,
                                   .bytes_programmed = 100,
                                   .bits_flipped = 100,
                                   .lines = 3});

    // The same once more: nothing to program.
    EXPECT_TRUE(co_await peer.write(memory.local(0, 100), {key, 60}));
    EXPECT_TRUE(co_await peer.read(memory.local(1024, 8), {key, 0}));
    expect_counts(writes.take().one_sided,
                  {.stores = 1, .field_bits = 800, .bytes_issued = 100, .lines = 3});

    EXPECT_TRUE(co_await peer.write(memory.local(0, 0), {key, 0}));  // does not write
    EXPECT_EQ(writes.take(), Writes{});
    if (thread.endpoint.capabilities().atomics) {
      EXPECT_TRUE(co_await peer.compare_and_swap({key, 4096}, 0, 15));
      expect_counts(writes.take().one_sided, {.stores = 1,
                                              .field_bits = 64,
                                              .bytes_issued = 8,
                                              .bytes_programmed = 1,
                                              .bits_flipped = 4,
                                              .lines = 1});
      EXPECT_TRUE(co_await peer.compare_and_swap({key, 4096}, 0, 15));  // does not write
      EXPECT_EQ(writes.take(), Writes{});
      EXPECT_TRUE(co_await peer.fetch_and_add({key, 4096}, 1));
      expect_counts(writes.take().one_sided, {.stores = 1,
                                              .field_bits = 64,
                                              .bytes_issued = 8,
                                              .bytes_programmed = 1,
                                              .bits_flipped = 5,
                                              .lines = 1});
    }
    co_await barrier->arrive_and_wait();
  });
  platform->run();
}

TEST_P(PmemAccounting, MessagesThatLandInPersistentMemoryAreCounted) {
  for (const Medium medium : {Medium::pm, Medium::dram}) {
    PairOptions options;
    options.buffers = medium;
    connected(
        options,
        [&](Side& server) -> Task<> {
          const auto message = co_await server.completions.next();
          EXPECT_EQ(message.buffer.length, 64U);
          co_await server.meet();
        },
        [&](Side& client) -> Task<> {
          client.region->write(0, std::vector(64, std::byte{1}));
          const Writes before = client.thread.node.pm_writes();
          EXPECT_TRUE(co_await client.queue_pair->send(client.local(0, 64)));
          co_await client.meet();
          Writes sum = client.thread.node.pm_writes();
          sum -= before;
          expect_counts(sum.local_store, {});
          if (medium == Medium::dram) {
            expect_counts(sum.one_sided, {});
          }
        });
  }
}

// The sum over a node's threads, taken by one of them while the others wait in a barrier.
TEST_P(PmemAccounting, ANodeAddsUpItsThreads) {
  constexpr std::uint32_t kThreads = 3;
  const auto platform = make({.node_count = 1});
  const auto barrier = platform->create_barrier(kThreads);
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    platform->start(0, static_cast<fabric::Port>(i), mode(), [&, i](Thread& thread) -> Task<> {
      const auto region = thread.node.create_region("pm-" + std::to_string(i), 4096, Medium::pm);
      for (std::uint64_t round = 1; round <= 20; ++round) {
        for (std::uint64_t n = 0; n < 10; ++n) region->store(n * 8, round);
        co_await barrier->arrive_and_wait();
        if (i == 0) {
          EXPECT_EQ(thread.node.pm_writes().local_store.stores, kThreads * 10 * round);
        }
        co_await barrier->arrive_and_wait();
      }
    });
  }
  platform->run();
  EXPECT_EQ(platform->local_node(0)->pm_writes().local_store.stores, kThreads * 10 * 20);
}

}  // namespace perdura::conformance
