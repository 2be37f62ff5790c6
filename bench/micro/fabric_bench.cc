// Probes of the fabric over shared memory: what an operation costs from end to end, with the task
// switches around it, between two threads that poll. Needs two cores that nobody else uses.
#include <benchmark/benchmark.h>

#include <functional>

#include "platform/shm_platform.h"

namespace perdura {
namespace {

using fabric::Access;
using pmem::Medium;

// One of the two threads: a region, receive buffers, and a connection to the other.
struct Side {
  std::unique_ptr<pmem::Region> region;
  fabric::MemoryRegion memory;
  std::unique_ptr<fabric::ReceiveQueue> receives;
  fabric::CompletionQueue completions;
  std::unique_ptr<fabric::QueuePair> peer;

  static constexpr std::uint32_t kBuffers = 16;
  static constexpr std::uint32_t kBuffer = 4 * KiB;

  Side(Thread& thread, Medium medium)
      : region(thread.node.create_region("bench", MiB, medium)),
        memory(thread.endpoint.register_memory(*region, Access::remote_all)),
        receives(thread.endpoint.create_receive_queue(kBuffers)) {
    for (std::uint64_t id = 0; id < kBuffers; ++id) post(id);
  }
  void post(std::uint64_t id) {
    receives->post(memory.local(512 * KiB + id * kBuffer, kBuffer), id);
  }
  fabric::QueuePairOptions options() {
    return {.receive_queue = receives.get(), .completions = &completions};
  }
};

// Runs `client` on a connection to a server that answers every message with one of the same length.
void with_server(Medium medium, const std::function<Task<>(Side&, fabric::RemoteAddress)>& client) {
  ShmOptions options;
  options.node_count = 2;
  options.accounting = pmem::WriteMeter::Level::issued;
  ShmPlatform platform(options);
  fabric::RemoteAddress there;
  platform.start(0, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    Side side(thread, medium);
    there = side.memory.remote(0);
    side.peer = (co_await thread.endpoint.next_connection())->accept(side.options(), {});
    for (;;) {
      const auto message = co_await side.completions.next();
      if (message.status != fabric::Status::success) co_return;
      static_cast<void>(co_await side.peer->send(side.memory.local(0, message.buffer.length)));
      side.post(message.buffer_id);
    }
  });
  platform.start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    Side side(thread, Medium::dram);
    side.peer = (co_await thread.endpoint.connect({0, 1}, side.options(), {})).queue_pair;
    co_await client(side, there);
  });
  platform.run();
}

void fabric_read(benchmark::State& state) {
  const auto size = static_cast<std::uint32_t>(state.range(0));
  with_server(Medium::dram, [&](Side& side, fabric::RemoteAddress there) -> Task<> {
    for ([[maybe_unused]] auto _ : state) {
      const auto done = co_await side.peer->read(side.memory.local(0, size), there);
      if (!done) state.SkipWithError("the READ failed");
    }
  });
  state.SetBytesProcessed(state.iterations() * size);
}
BENCHMARK(fabric_read)->Arg(8)->Arg(64)->Arg(4096);

void fabric_write(benchmark::State& state) {
  const auto size = static_cast<std::uint32_t>(state.range(0));
  with_server(state.range(1) != 0 ? Medium::pm : Medium::dram,
              [&](Side& side, fabric::RemoteAddress there) -> Task<> {
                for ([[maybe_unused]] auto _ : state) {
                  const auto done = co_await side.peer->write(side.memory.local(0, size), there);
                  if (!done) state.SkipWithError("the WRITE failed");
                }
              });
  state.SetBytesProcessed(state.iterations() * size);
}
BENCHMARK(fabric_write)->ArgNames({"size", "pm"})->ArgsProduct({{64, 4096}, {0, 1}});

void fabric_fetch_and_add(benchmark::State& state) {
  with_server(Medium::dram, [&](Side& side, fabric::RemoteAddress there) -> Task<> {
    for ([[maybe_unused]] auto _ : state) {
      benchmark::DoNotOptimize((co_await side.peer->fetch_and_add(there, 1)).old_value);
    }
  });
}
BENCHMARK(fabric_fetch_and_add);

void fabric_send_receive_round_trip(benchmark::State& state) {
  const auto size = static_cast<std::uint32_t>(state.range(0));
  with_server(Medium::dram, [&](Side& side, fabric::RemoteAddress) -> Task<> {
    for ([[maybe_unused]] auto _ : state) {
      static_cast<void>(co_await side.peer->send(side.memory.local(0, size)));
      const auto answer = co_await side.completions.next();
      side.post(answer.buffer_id);
    }
  });
}
BENCHMARK(fabric_send_receive_round_trip)->Arg(16)->Arg(64)->Arg(1024)->UseRealTime();

}  // namespace
}  // namespace perdura
