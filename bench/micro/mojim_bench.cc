// Compares Mojim's M-sync with the SEND that it needs: syncs of a page, SENDs of the same length
// whose receiver reads them and posts the buffer again, as any receiver has to, and SENDs that
// nobody reads, in turn between the same two processes over shared memory, from one polling thread
// to another. A SEND costs more if the receiver reads the message: the sender's processor, which
// places the message here, must get the buffer's cache lines back for the next one.
//
// Needs two idle cores; each process is pinned to one. Times are the medians of the rounds, in
// nanoseconds, ratios the medians of the rounds' ratios.
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "bench/micro/two_processes.h"
#include "platform/host/host_node.h"
#include "services/memory/memory.h"
#include "systems/registry/registry.h"

namespace perdura::bench::micro {
namespace {

constexpr std::uint32_t kPage = 4 * KiB;
constexpr std::uint32_t kRequest = kCacheLine + kPage;  // a page and its header

enum class Received : std::uint8_t { left, read };

// Receives into persistent memory, and posts each buffer again.
Task<> receive(Thread& thread, std::unique_ptr<fabric::ConnectionRequest> request,
               Received received) {
  constexpr std::uint32_t kBuffers = 4096;  // as many as Mojim's log has
  const auto region = thread.node.create_region("log-" + std::to_string(static_cast<int>(received)),
                                                Bytes{kBuffers} * kRequest, pmem::Medium::pm);
  const auto memory = thread.endpoint.register_memory(*region, fabric::Access::local);
  const auto buffers = thread.endpoint.create_receive_queue(kBuffers);
  const auto post = [&](std::uint64_t id) {
    buffers->post(memory.local(id * kRequest, kRequest), id);
  };
  for (std::uint64_t id = 0; id < kBuffers; ++id) post(id);
  fabric::CompletionQueue completions;
  const auto peer =
      request->accept({.receive_queue = buffers.get(), .completions = &completions}, {});
  std::vector<std::byte> bytes(kRequest);
  for (;;) {
    const auto message = co_await completions.next();
    if (message.status != fabric::Status::success) co_return;
    if (received == Received::read) region->read(message.buffer_id * kRequest, bytes);
    post(message.buffer_id);
  }
}

const services::MemorySystem& m_sync() { return systems::find_memory_system("m-sync"); }
services::MemoryConfig config() {
  return {.size = 64 * KiB, .completion = CompletionMode::polling};
}

// The first two connections are those of the SENDs; the mirror has the others.
Task<> be_the_mirror(Thread& thread) {
  pin_this_thread({1});
  for (const Received received : {Received::left, Received::read}) {
    auto request = co_await thread.endpoint.next_connection();
    thread.executor.spawn(receive(thread, std::move(request), received));
  }
  const auto mirror = m_sync().open(thread, "memory", config(), services::MemoryRole::mirror);
  co_await mirror->serve(thread);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Task<> send_and_sync(Thread& thread, benchmark::State& state) {
  const std::int64_t in_turn = state.range(0);
  pin_this_thread({0});
  const auto region = thread.node.create_region("page", kRequest, pmem::Medium::pm);
  const auto memory = thread.endpoint.register_memory(*region, fabric::Access::local);
  std::array<fabric::Connection, 2> connections;
  for (fabric::Connection& made : connections) {
    made = co_await thread.endpoint.connect({1, 0}, {}, {});
  }
  const auto primary = m_sync().open(thread, "memory", config(), services::MemoryRole::primary);
  const auto mapped = co_await primary->map(thread);
  const auto send = [&](Received to) -> Task<> {
    fabric::QueuePair& queue_pair = *connections[static_cast<std::size_t>(to)].queue_pair;
    for (std::int64_t i = 0; i < in_turn; ++i) {
      const fabric::Completion sent = co_await queue_pair.send(memory.local(0, kRequest));
      if (!sent) state.SkipWithError("a SEND failed");
    }
  };
  const auto sync = [&]() -> Task<> {
    for (std::int64_t i = 0; i < in_turn; ++i) {
      const auto synced = co_await mapped->sync({0, kPage});
      if (!synced) state.SkipWithError("a sync failed");
    }
  };
  const auto timed = [&](Task<> task) -> Task<double> {
    const auto begin = std::chrono::steady_clock::now();
    co_await std::move(task);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    co_return took.count() / static_cast<double>(in_turn);
  };
  std::array<std::vector<double>, 5> rounds;
  for ([[maybe_unused]] auto _ : state) {
    const double left = co_await timed(send(Received::left));
    const double read = co_await timed(send(Received::read));
    const double synced = co_await timed(sync());
    const std::array values{left, read, synced, synced / left, synced / read};
    for (std::size_t i = 0; i < values.size(); ++i) rounds[i].push_back(values[i]);
  }
  constexpr std::array kNames{"send_left", "send_read", "sync", "sync_to_left", "sync_to_read"};
  for (std::size_t i = 0; i < rounds.size(); ++i) state.counters[kNames[i]] = median(rounds[i]);
}

void sync_beside_sends(benchmark::State& state) {
  run_in_two_processes(
      state, 0, [&](Thread& thread) { return send_and_sync(thread, state); },
      [](Thread& thread) { return be_the_mirror(thread); });
}
// Syncs or SENDs in a row: 1, so that each finds the processor's caches full of the others'; some;
// and more than the log holds, so that the mirror has to keep up by applying them.
BENCHMARK(sync_beside_sends)->ArgName("in_turn")->Arg(1)->Arg(64)->Arg(16384)->UseRealTime();

}  // namespace
}  // namespace perdura::bench::micro
