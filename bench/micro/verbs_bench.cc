// Benchmarks of the fabric on an RDMA device that do what perftest's tools do, between two polling
// processes: ib_write_lat (WRITEs back and forth), ib_read_lat, ib_send_lat and ib_write_bw. Sizes
// are in bytes. tests/vm/guest/perftest sets their figures beside those of the tools.
//
//   median_us         of one operation; for WRITE and SEND half a round trip, as in the tools
//   items_per_second  WRITEs of fabric_verbs_write_rate
//
// The server is a second process, which enters the network namespace of the file that
// PERDURA_PEER_NAMESPACE names (root only): the other host of the virtual cluster.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "platform/base/error.h"
#include "platform/verbs/verbs_platform.h"

namespace perdura::bench::micro {
namespace {

using fabric::Access;
using fabric::OperationFlags;
using fabric::RdmaOperation;
using fabric::RemoteAddress;

constexpr Bytes kMemory = MiB;
constexpr Bytes kIn = 0;  // offset to which the peer writes
constexpr Bytes kOut = 256 * KiB;
constexpr Bytes kReceives = 512 * KiB;
// The length up to which perftest uses inline data by default.
constexpr std::uint32_t kInlined = 220;
constexpr int kLatencies = 2000;

// A connection to the other process, with a region at each end.
struct Side {
  std::unique_ptr<pmem::Region> region;
  fabric::MemoryRegion memory;
  std::unique_ptr<fabric::ReceiveQueue> receives;
  fabric::CompletionQueue completions;
  std::unique_ptr<fabric::QueuePair> peer;
  RemoteAddress there{};
  std::uint32_t size;
  OperationFlags flags;

  static constexpr std::uint32_t kBuffers = 16;

  Side(Thread& thread, std::uint32_t bytes)
      : region(thread.node.create_region("bench", kMemory, pmem::Medium::dram)),
        memory(thread.endpoint.register_memory(*region, Access::remote_all)),
        receives(thread.endpoint.create_receive_queue(kBuffers)),
        size(bytes),
        flags{.inlined = bytes <= kInlined} {
    for (std::uint64_t id = 0; id < kBuffers; ++id) post(id);
  }
  void post(std::uint64_t id) {
    receives->post(memory.local(kReceives + id * 4 * KiB, 4 * KiB), id);
  }
  fabric::QueuePairOptions options() {
    // The default send queue depth of ib_write_bw.
    return {.receive_queue = receives.get(), .completions = &completions, .send_depth = 128};
  }

  // The last word of the message changes with the round: a peer that sees the change has the whole
  // message.
  RdmaOperation write(std::uint64_t round) {
    region->store(kOut + size - kWord, round);
    return peer->write(memory.local(kOut, size), {there.key, there.offset + kIn}, flags);
  }
  RdmaOperation send() { return peer->send(memory.local(kOut, size), flags); }
  auto written(std::uint64_t round) {
    return host::until([this, round] { return region->load(kIn + size - kWord) == round; });
  }
  // Waits for a message. Returns false if the connection has ended.
  Task<bool> message() {
    const auto received = co_await completions.next();
    if (received.status == fabric::Status::success) post(received.buffer_id);
    co_return received.status == fabric::Status::success;
  }
};

std::span<const std::byte> bytes_of(const RemoteAddress& address) {
  return std::as_bytes(std::span(&address, 1));
}

RemoteAddress address_in(std::span<const std::byte> bytes) {
  RemoteAddress address;
  std::memcpy(&address, bytes.data(), sizeof address);
  return address;
}

using Body = std::function<Task<bool>(Side&)>;  // returns false if an operation failed

Task<> serve(Thread& thread, std::uint32_t size, const Body* body) {
  Side side(thread, size);
  const auto request = co_await thread.endpoint.next_connection();
  side.there = address_in(request->private_data());
  const RemoteAddress here = side.memory.remote(0);
  side.peer = request->accept(side.options(), bytes_of(here));
  co_await (*body)(side);
}

Task<> use(Thread& thread, std::uint32_t size, const Body* body, benchmark::State* state) {
  Side side(thread, size);
  const RemoteAddress here = side.memory.remote(0);
  const auto own = bytes_of(here);
  std::vector<std::byte> private_data(own.begin(), own.end());
  auto connection =
      co_await thread.endpoint.connect({0, 1}, side.options(), std::move(private_data));
  if (connection.status != fabric::Status::success) {
    state->SkipWithError("cannot connect");
    co_return;
  }
  side.peer = std::move(connection.queue_pair);
  side.there = address_in(connection.private_data);
  const bool done = co_await (*body)(side);
  if (!done) state->SkipWithError("an operation failed");
}

int serve_as_process(VerbsOptions options, std::uint32_t size, CompletionMode mode,
                     const Body& server) {
  try {
    if (const char* const peer = std::getenv("PERDURA_PEER_NAMESPACE")) {
      const int file = ::open(peer, O_RDONLY | O_CLOEXEC);
      if (file < 0 || ::setns(file, CLONE_NEWNET) != 0) {
        throw PlatformError("cannot enter the network namespace '" + std::string(peer) +
                            "' (PERDURA_PEER_NAMESPACE): " + std::strerror(errno));
      }
    }
    VerbsPlatform platform(std::move(options));
    platform.start_service(0, 1, mode,
                           [&](Thread& thread) { return serve(thread, size, &server); });
    platform.run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "server process: %s\n", error.what());
    return 1;
  }
  return 0;
}

Task<bool> wait_for_the_end(Side& side) {
  const bool message = co_await side.message();
  co_return !message;
}

// Runs `client` here and `server` in another process, which polls only if it takes part.
void between_processes(benchmark::State& state, const Body& server, const Body& client,
                       CompletionMode of_server_mode = CompletionMode::polling) {
  const auto size = static_cast<std::uint32_t>(state.range(0));
  VerbsOptions options{.node_count = 2, .local_nodes = {1}};
  options.listener = std::make_shared<fabric::verbs::ControlListener>();
  VerbsOptions of_server{.node_count = 2, .local_nodes = {0}};
  of_server.coordinator = options.listener->address();
  // Forking is safe here: the process has no other threads, since a platform's threads end with it.
  std::fflush(nullptr);
  const pid_t process = ::fork();
  if (process < 0) return state.SkipWithError("cannot fork");
  if (process == 0) ::_exit(serve_as_process(std::move(of_server), size, of_server_mode, server));
  try {
    VerbsPlatform platform(std::move(options));
    platform.start(1, 1, CompletionMode::polling,
                   [&](Thread& thread) { return use(thread, size, &client, &state); });
    platform.run();
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
  int status = 0;
  if (::waitpid(process, &status, 0) != process || status != 0) {
    state.SkipWithError("the server process failed");
  }
}

// Collects the intervals from the start of one operation to the start of the next.
class Intervals {
 public:
  explicit Intervals(benchmark::State& state) : state_(state) { times_.reserve(kLatencies + 1); }
  void next() { times_.push_back(Executor::current().now()); }
  // Reports the median of the intervals, each of which contains `operations` operations.
  void report(double operations) {
    next();
    std::vector<double> intervals;
    for (std::size_t i = 1; i < times_.size(); ++i) {
      const std::chrono::duration<double, std::micro> interval = times_[i] - times_[i - 1];
      intervals.push_back(interval.count() / operations);
    }
    const auto middle = intervals.begin() + static_cast<std::ptrdiff_t>(intervals.size() / 2);
    std::nth_element(intervals.begin(), middle, intervals.end());
    state_.counters["median_us"] = *middle;
  }

 private:
  benchmark::State& state_;
  std::vector<Time> times_;
};

Task<bool> answer_writes(Side& side) {
  for (std::uint64_t round = 1;; ++round) {
    co_await side.written(round);
    if (!co_await side.write(round)) co_return false;
  }
}

void fabric_verbs_write(benchmark::State& state) {
  between_processes(state, answer_writes, [&](Side& side) -> Task<bool> {
    std::uint64_t round = 0;
    Intervals intervals(state);
    for ([[maybe_unused]] auto _ : state) {
      intervals.next();
      if (!co_await side.write(++round)) co_return false;
      co_await side.written(round);
    }
    intervals.report(2);
    co_return true;
  });
}

void fabric_verbs_read(benchmark::State& state) {
  between_processes(
      state, wait_for_the_end,
      [&](Side& side) -> Task<bool> {
        Intervals intervals(state);
        for ([[maybe_unused]] auto _ : state) {
          intervals.next();
          if (!co_await side.peer->read(side.memory.local(kIn, side.size), side.there)) {
            co_return false;
          }
        }
        intervals.report(1);
        co_return true;
      },
      CompletionMode::event);
}

Task<bool> answer_messages(Side& side) {
  for (;;) {
    const bool message = co_await side.message();
    if (!message) co_return true;
    if (!co_await side.send()) co_return false;
  }
}

void fabric_verbs_send(benchmark::State& state) {
  between_processes(state, answer_messages, [&](Side& side) -> Task<bool> {
    Intervals intervals(state);
    for ([[maybe_unused]] auto _ : state) {
      intervals.next();
      if (!co_await side.send()) co_return false;
      const bool answer = co_await side.message();
      if (!answer) co_return false;
    }
    intervals.report(2);
    co_return true;
  });
}

// An iteration posts half a send queue of WRITEs, of which only the last is signaled; the other
// half is in flight meanwhile.
constexpr std::uint32_t kHalf = 64;

void fabric_verbs_write_rate(benchmark::State& state) {
  between_processes(
      state, wait_for_the_end,
      [&](Side& side) -> Task<bool> {
        const fabric::LocalBuffer from = side.memory.local(kOut, side.size);
        std::array<std::optional<RdmaOperation>, 2> halves;
        std::size_t half = 0;
        for ([[maybe_unused]] auto _ : state) {
          for (std::uint32_t i = 1; i < kHalf; ++i) {
            side.peer->post_unsignaled(
                {.opcode = fabric::Opcode::write, .local = from, .remote = side.there});
          }
          halves[half]
              .emplace(*side.peer,
                       fabric::WorkRequest{
                           .opcode = fabric::Opcode::write, .local = from, .remote = side.there})
              .post();
          half ^= 1;
          if (!halves[half]) continue;
          RdmaOperation& before = *halves[half];
          const auto done = co_await before;
          if (!done) co_return false;
        }
        RdmaOperation& last = *halves[half ^ 1];
        const auto done = co_await last;
        if (!done) co_return false;
        co_return true;
      },
      CompletionMode::event);
  state.SetItemsProcessed(state.iterations() * kHalf);
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("bytes")->Arg(8)->Arg(64)->Arg(1024)->Arg(4096)->UseRealTime();
}

BENCHMARK(fabric_verbs_write)->Apply(sizes)->Iterations(kLatencies);
BENCHMARK(fabric_verbs_read)->Apply(sizes)->Iterations(kLatencies);
BENCHMARK(fabric_verbs_send)->Apply(sizes)->Iterations(kLatencies);
BENCHMARK(fabric_verbs_write_rate)->Apply(sizes)->Iterations(100);

}  // namespace
}  // namespace perdura::bench::micro
