// Benchmarks of the fabric over shared memory: the end-to-end cost of an operation, including the
// task switches around it, between two polling threads of one process or of two. Needs two idle
// cores.
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "bench/micro/two_processes.h"

namespace perdura::bench::micro {
namespace {

using fabric::Access;
using pmem::Medium;

// The state of one of the two threads: a region, receive buffers, and a connection to the other.
struct Side {
  std::unique_ptr<pmem::Region> region;
  fabric::MemoryRegion memory;
  std::unique_ptr<fabric::ReceiveQueue> receives;
  fabric::CompletionQueue completions;
  std::unique_ptr<fabric::QueuePair> peer;
  fabric::RemoteKey file{};  // the server's, for the client

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

using Client = std::function<Task<>(Side&, fabric::RemoteAddress)>;

// The first half of a region as a file that is long enough for every benchmark: each part of it is
// the same memory.
constexpr Bytes kFileMemory = 512 * KiB;
constexpr Bytes kFile = 16 * GiB;
constexpr Bytes kFileSize = MiB - kWord;  // where its size is in the region
std::vector<fabric::Extent> parts_of_file() {
  std::vector<fabric::Extent> extents;
  for (Bytes at = 0; at < kFile; at += kFileMemory) extents.push_back({at, 0, kFileMemory});
  return extents;
}

// The server tells its client where its memory is, and the same memory as a file.
struct Welcome {
  fabric::RemoteAddress memory;
  fabric::RemoteKey file;
};

// Answers every message with one of the same length.
Task<> serve(Thread& thread, Medium medium) {
  Side side(thread, medium);
  const fabric::ExtentMap file =
      thread.endpoint.register_extents(*side.region, parts_of_file(), Access::remote_all);
  fabric::RangeFaults faults;
  thread.endpoint.allow_appends(file, kFileSize, faults);
  const Welcome here{side.memory.remote(0), file.key};
  side.peer = (co_await thread.endpoint.next_connection())
                  ->accept(side.options(), std::as_bytes(std::span(&here, 1)));
  for (;;) {
    const auto message = co_await side.completions.next();
    if (message.status != fabric::Status::success) co_return;
    static_cast<void>(co_await side.peer->send(side.memory.local(0, message.buffer.length)));
    side.post(message.buffer_id);
  }
}

Task<> use(Thread& thread, fabric::Address server, Client client, benchmark::State* state) {
  Side side(thread, Medium::dram);
  auto connection = co_await thread.endpoint.connect(server, side.options(), {});
  if (connection.status != fabric::Status::success) {
    state->SkipWithError("cannot connect");
    co_return;
  }
  side.peer = std::move(connection.queue_pair);
  Welcome there;
  std::memcpy(&there, connection.private_data.data(), sizeof there);
  side.file = there.file;
  co_await client(side, there.memory);
}

// Runs `client` in a thread beside the server's.
void with_server(benchmark::State& state, Medium medium, const Client& client) {
  ShmOptions options;
  options.node_count = 2;
  options.accounting = pmem::WriteMeter::Level::issued;
  ShmPlatform platform(std::move(options));
  platform.start_service(0, 1, CompletionMode::polling,
                         [medium](Thread& thread) { return serve(thread, medium); });
  platform.start(1, 1, CompletionMode::polling, [&](Thread& thread) {
    return use(thread, {0, 1}, client, &state);
  });
  platform.run();
}

// Runs `client` here and the server in another process.
void with_server_process(benchmark::State& state, Medium medium, const Client& client) {
  run_in_two_processes(
      state, 1,
      [&](Thread& thread) {
        return use(thread, {1, 1}, client, &state);
      },
      [medium](Thread& thread) { return serve(thread, medium); });
}

void fabric_read(benchmark::State& state) {
  const auto size = static_cast<std::uint32_t>(state.range(0));
  with_server(state, Medium::dram, [&](Side& side, fabric::RemoteAddress there) -> Task<> {
    for ([[maybe_unused]] auto _ : state) {
      const auto done = co_await side.peer->read(side.memory.local(0, size), there);
      if (!done) state.SkipWithError("the READ failed");
    }
  });
  state.SetBytesProcessed(state.iterations() * size);
}
BENCHMARK(fabric_read)->Arg(8)->Arg(64)->Arg(4096)->UseRealTime();

void fabric_write(benchmark::State& state) {
  const auto size = static_cast<std::uint32_t>(state.range(0));
  with_server(state, state.range(1) != 0 ? Medium::pm : Medium::dram,
              [&](Side& side, fabric::RemoteAddress there) -> Task<> {
                for ([[maybe_unused]] auto _ : state) {
                  const auto done = co_await side.peer->write(side.memory.local(0, size), there);
                  if (!done) state.SkipWithError("the WRITE failed");
                }
              });
  state.SetBytesProcessed(state.iterations() * size);
}
BENCHMARK(fabric_write)->ArgNames({"size", "pm"})->ArgsProduct({{64, 4096}, {0, 1}});

// The same through a registration of 32,768 extents.
void fabric_write_to_extents(benchmark::State& state) {
  const auto size = static_cast<std::uint32_t>(state.range(0));
  with_server(state, Medium::dram, [&](Side& side, fabric::RemoteAddress) -> Task<> {
    for ([[maybe_unused]] auto _ : state) {
      const auto done = co_await side.peer->write(side.memory.local(0, size), {side.file, 0});
      if (!done) state.SkipWithError("the WRITE failed");
    }
  });
  state.SetBytesProcessed(state.iterations() * size);
}
BENCHMARK(fabric_write_to_extents)->ArgName("size")->Arg(64)->Arg(4096);

void fabric_append(benchmark::State& state) {
  const auto size = static_cast<std::uint32_t>(state.range(0));
  with_server(state, Medium::dram, [&](Side& side, fabric::RemoteAddress) -> Task<> {
    for ([[maybe_unused]] auto _ : state) {
      const auto done = co_await side.peer->append(side.memory.local(0, size), side.file);
      if (!done) state.SkipWithError("the APPEND failed");
    }
  });
  state.SetBytesProcessed(state.iterations() * size);
}
BENCHMARK(fabric_append)->ArgName("size")->Arg(64)->Arg(4096);

void fabric_fetch_and_add(benchmark::State& state) {
  with_server(state, Medium::dram, [&](Side& side, fabric::RemoteAddress there) -> Task<> {
    for ([[maybe_unused]] auto _ : state) {
      benchmark::DoNotOptimize((co_await side.peer->fetch_and_add(there, 1)).old_value);
    }
  });
}
BENCHMARK(fabric_fetch_and_add);

Task<> round_trips(Side& side, benchmark::State* state, std::uint32_t size) {
  for ([[maybe_unused]] auto _ : *state) {
    static_cast<void>(co_await side.peer->send(side.memory.local(0, size)));
    const auto answer = co_await side.completions.next();
    if (answer.status != fabric::Status::success) {
      state->SkipWithError("the answer did not come");
      co_return;
    }
    side.post(answer.buffer_id);
  }
}

void fabric_send_receive_round_trip(benchmark::State& state) {
  const auto size = static_cast<std::uint32_t>(state.range(0));
  with_server(state, Medium::dram,
              [&](Side& side, fabric::RemoteAddress) { return round_trips(side, &state, size); });
}
BENCHMARK(fabric_send_receive_round_trip)->Arg(16)->Arg(64)->Arg(1024)->UseRealTime();

void fabric_send_receive_round_trip_between_processes(benchmark::State& state) {
  const auto size = static_cast<std::uint32_t>(state.range(0));
  with_server_process(state, Medium::dram, [&](Side& side, fabric::RemoteAddress) {
    return round_trips(side, &state, size);
  });
}
BENCHMARK(fabric_send_receive_round_trip_between_processes)
    ->Arg(16)
    ->Arg(64)
    ->Arg(1024)
    ->UseRealTime();

void fabric_read_between_processes(benchmark::State& state) {
  const auto size = static_cast<std::uint32_t>(state.range(0));
  with_server_process(state, Medium::dram, [&](Side& side, fabric::RemoteAddress there) -> Task<> {
    for ([[maybe_unused]] auto _ : state) {
      const auto done = co_await side.peer->read(side.memory.local(0, size), there);
      if (!done) state.SkipWithError("the READ failed");
    }
  });
  state.SetBytesProcessed(state.iterations() * size);
}
BENCHMARK(fabric_read_between_processes)->Arg(64)->UseRealTime();

}  // namespace
}  // namespace perdura::bench::micro
