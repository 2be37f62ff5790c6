// What Mojim's M-sync adds to the SEND that it needs: both between the same two processes over
// shared memory, from a thread that polls to one that polls. Needs two idle cores. A SEND costs far
// more if the receiver reads what it gets, as a mirror has to: the sender's processor, which places
// the message here, must get the buffer's cache lines back for the next one.
#include <memory>
#include <vector>

#include "bench/micro/two_processes.h"
#include "services/memory/memory.h"
#include "systems/registry/registry.h"

namespace perdura {
namespace {

constexpr std::uint32_t kPage = 4 * KiB;
constexpr std::uint32_t kRequest = kCacheLine + kPage;  // a page and its header

enum class Received : std::uint8_t { left, read };

// Receives into persistent memory, and posts each buffer again.
Task<> receive(Thread& thread, Received received) {
  constexpr std::uint32_t kBuffers = 4096;  // as Mojim's log
  const auto region =
      thread.node.create_region("log", Bytes{kBuffers} * kRequest, pmem::Medium::pm);
  const auto memory = thread.endpoint.register_memory(*region, fabric::Access::local);
  const auto buffers = thread.endpoint.create_receive_queue(kBuffers);
  const auto post = [&](std::uint64_t id) {
    buffers->post(memory.local(id * kRequest, kRequest), id);
  };
  for (std::uint64_t id = 0; id < kBuffers; ++id) post(id);
  fabric::CompletionQueue completions;
  const auto peer = (co_await thread.endpoint.next_connection())
                        ->accept({.receive_queue = buffers.get(), .completions = &completions}, {});
  std::vector<std::byte> bytes(kRequest);
  for (;;) {
    const auto message = co_await completions.next();
    if (message.status != fabric::Status::success) co_return;
    if (received == Received::read) region->read(message.buffer_id * kRequest, bytes);
    post(message.buffer_id);
  }
}

void send_of_a_page(benchmark::State& state, Received received) {
  run_in_two_processes(
      state, 0,
      [&](Thread& thread) -> Task<> {
        const auto region = thread.node.create_region("page", kRequest, pmem::Medium::pm);
        const auto memory = thread.endpoint.register_memory(*region, fabric::Access::local);
        const auto made = co_await thread.endpoint.connect({1, 0}, {}, {});
        for ([[maybe_unused]] auto _ : state) {
          const fabric::Completion sent = co_await made.queue_pair->send(memory.local(0, kRequest));
          if (!sent) state.SkipWithError("the SEND failed");
        }
      },
      [received](Thread& thread) { return receive(thread, received); });
}
BENCHMARK_CAPTURE(send_of_a_page, left, Received::left)->UseRealTime();
BENCHMARK_CAPTURE(send_of_a_page, read, Received::read)->UseRealTime();

void sync_of_a_page(benchmark::State& state) {
  const services::MemorySystem& system = systems::find_memory_system("m-sync");
  const services::MemoryConfig config{.size = 64 * KiB, .completion = CompletionMode::polling};
  run_in_two_processes(
      state, 0,
      [&](Thread& thread) -> Task<> {
        const auto primary = system.open(thread, "memory", config, services::MemoryRole::primary);
        const auto memory = co_await primary->map(thread);
        for ([[maybe_unused]] auto _ : state) {
          if (!co_await memory->sync({0, kPage})) state.SkipWithError("a sync failed");
        }
      },
      [&](Thread& thread) -> Task<> {
        const auto mirror = system.open(thread, "memory", config, services::MemoryRole::mirror);
        co_await mirror->serve(thread);
      });
}
BENCHMARK(sync_of_a_page)->UseRealTime();

}  // namespace
}  // namespace perdura
