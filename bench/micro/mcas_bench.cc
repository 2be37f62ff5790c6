// Compares a shard of MCAS with the least that any server has to do, over shared memory, in one run
// so that the ratios hold on a busy machine:
//
// - of_requests: the CPU time of the serving thread, for gets and puts of 16 bytes, and for
//   requests and answers of the same length with nothing done in between. The client is the same,
//   and shares a core with the servers: each batch has been sent before the server begins it, so
//   the server is never idle within one. Also for requests whose value is only stored in a line of
//   persistent memory and persisted: the part of a put that the memory takes.
// - of_direct_puts: the time of a direct put; of a WRITE of the same length into the persistent
//   memory of a server, which then flushes it; and of a READ of the same length by that server,
//   which flushes it, too.
//
// of_direct_puts needs two idle cores. Times are the medians of the rounds, in nanoseconds, ratios
// the medians of the rounds' ratios.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "platform/base/error.h"
#include "platform/host/host_node.h"
#include "platform/shm/shm_platform.h"
#include "rpc/connect.h"
#include "rpc/messages.h"
#include "rpc/receive_buffers.h"
#include "rpc/sessions.h"
#include "systems/mcas/mcas.h"
#include "systems/mcas/protocol/messages.h"

namespace perdura::bench::micro {
namespace {

using systems::mcas::Hello;
using systems::mcas::PoolHandle;
using systems::mcas::Reply;
using systems::mcas::Request;
using systems::mcas::RequestKind;
using systems::mcas::Transfer;

constexpr Bytes kValue = 16;
constexpr std::uint64_t kKeys = 4096;
// The number of requests under way at a time.
constexpr std::uint32_t kBatch = 256;
constexpr int kBatches = 16;  // batches of one kind in turn

constexpr NodeId kBareServer = 0;
constexpr NodeId kShard = 1;
constexpr NodeId kClient = 2;

// The message buffers of one side, and memory for data that is moved outside of messages.
class Side {
 public:
  static constexpr std::uint32_t kMessage = 128;
  static constexpr Bytes kDirect = Bytes{2} * kBatch * kMessage;

  Side(Thread& thread, pmem::Medium medium, Bytes direct)
      : region(thread.node.create_region("side", kDirect + direct, medium)),
        memory(thread.endpoint.register_memory(*region, fabric::Access::remote_all)),
        sent{memory, Bytes{kBatch} * kMessage, kMessage, kMessage},
        max_inline_(thread.endpoint.capabilities().max_inline) {
    received.open(thread.endpoint, kBatch);
    received.post_all({memory, 0, kMessage, kMessage}, kBatch);
  }
  fabric::QueuePairOptions options() { return {received.queue(), &completions, kBatch}; }
  void send(std::uint32_t buffer, Bytes length) {
    rpc::send(*peer, sent[buffer].first(static_cast<std::uint32_t>(length)), max_inline_);
  }

  std::unique_ptr<pmem::Region> region;
  fabric::MemoryRegion memory;
  rpc::ReceiveBuffers received;
  rpc::BufferRow sent;
  fabric::CompletionQueue completions;
  std::unique_ptr<fabric::QueuePair> peer;

 private:
  std::uint32_t max_inline_;
};

// The bare server persists the value of a request with this flag.
constexpr std::uint8_t kPersist = 1;

// Answers requests of the protocol without doing what they ask for: the reply to a get has as many
// bytes as a value, all others have none. For a put_direct, the value is READ into this server's
// memory and flushed; for a put_direct_offset, what the client has WRITTEN there is flushed.
Task<> answer(Thread& thread, Bytes direct) {
  Side side(thread, pmem::Medium::pm, std::max(direct, kKeys * kCacheLine));
  const fabric::RemoteAddress here = side.memory.remote(Side::kDirect);
  side.peer =
      (co_await thread.endpoint.next_connection())->accept(side.options(), rpc::bytes_of(here));
  for (;;) {
    const auto message = co_await side.completions.next();
    if (message.status != fabric::Status::success) co_return;
    const auto request = rpc::read_message<Request>(message.buffer.bytes());
    Reply reply{.id = request.id};
    if (request.kind == RequestKind::get) reply.value_length = kValue;
    if (request.flags == kPersist) {
      const auto key =
          rpc::read_message<std::uint64_t>(message.buffer.bytes().subspan(sizeof request));
      const Bytes line = Side::kDirect + key % kKeys * kCacheLine;
      side.region->write(line, message.buffer.bytes().last(kValue));
      side.region->flush(line, kValue);
      side.region->drain();
    }
    if (request.kind == RequestKind::put_direct) {
      const auto from = rpc::read_message<Transfer>(
          message.buffer.bytes().subspan(sizeof request + request.key_length));
      co_await side.peer->read(
          side.memory.local(Side::kDirect, static_cast<std::uint32_t>(from.length)),
          {{from.remote_key}, from.remote_offset});
    }
    if (request.kind == RequestKind::put_direct || request.kind == RequestKind::put_direct_offset) {
      side.region->flush(Side::kDirect, direct);
      side.region->drain();
    }
    const auto buffer = static_cast<std::uint32_t>(message.buffer_id);
    rpc::write_message(side.sent[buffer].bytes(), reply);
    side.send(buffer, reply.size());
    side.received.post(buffer);
  }
}

// A connection to either server.
class Client {
 public:
  Client(Thread& thread, Bytes direct)
      : thread_(thread), direct_(direct), side_(thread, pmem::Medium::dram, direct) {}

  Task<> connect(NodeId server) {
    auto made = co_await rpc::connect(thread_.endpoint, "the server", {server, 0}, side_.options(),
                                      rpc::bytes_of(Hello{systems::mcas::kProtocolVersion}));
    side_.peer = std::move(made.queue_pair);
    there_ = rpc::read_message<fabric::RemoteAddress>(made.private_data);
  }
  Task<> create_pool(Bytes size) {
    const systems::mcas::PoolSize value{size};
    prepare(0, RequestKind::create_pool, name_, rpc::bytes_of(value));
    side_.send(0, lengths_[0]);
    pool_ = rpc::read_message<PoolHandle>((co_await receive()).subspan(sizeof(Reply)));
  }
  // A batch of gets or puts.
  Task<> batch(RequestKind kind, std::uint8_t flags = 0) {
    const std::array<std::byte, kValue> value{};
    for (std::uint32_t i = 0; i < kBatch; ++i) {
      const std::uint64_t key = next_++ % kKeys;
      prepare(i, kind, rpc::bytes_of(key),
              std::span(value).first(kind == RequestKind::put ? kValue : 0), flags);
    }
    for (std::uint32_t i = 0; i < kBatch; ++i) side_.send(i, lengths_[i]);
    for (std::uint32_t i = 0; i < kBatch; ++i) co_await receive();
  }
  Task<> put_direct() {
    const fabric::RemoteAddress here = side_.memory.remote(Side::kDirect);
    const Transfer from{0, direct_, here.offset, here.key.value};
    co_await request(RequestKind::put_direct, rpc::bytes_of(from));
  }
  Task<> write_and_have_flushed() {
    const auto written = co_await side_.peer->write(
        side_.memory.local(Side::kDirect, static_cast<std::uint32_t>(direct_)), there_);
    if (!written) throw PlatformError("a WRITE failed");
    co_await request(RequestKind::put_direct_offset, {});
  }

 private:
  void prepare(std::uint32_t buffer, RequestKind kind, std::span<const std::byte> key,
               std::span<const std::byte> value, std::uint8_t flags = 0) {
    const Request request{.kind = kind,
                          .flags = flags,
                          .id = buffer,
                          .pool = pool_,
                          .key_length = static_cast<std::uint32_t>(key.size()),
                          .value_length = static_cast<std::uint32_t>(value.size())};
    const std::span<std::byte> into = side_.sent[buffer].bytes();
    rpc::write_message(into, request);
    std::ranges::copy(key, into.begin() + sizeof request);
    std::ranges::copy(value,
                      into.begin() + sizeof request + static_cast<std::ptrdiff_t>(key.size()));
    lengths_[buffer] = request.size();
  }
  Task<> request(RequestKind kind, std::span<const std::byte> value) {
    prepare(0, kind, name_, value);
    side_.send(0, lengths_[0]);
    co_await receive();
  }
  // Returns the reply, which is valid until the next one is received.
  Task<std::span<const std::byte>> receive() {
    const auto message = co_await side_.completions.next();
    if (message.status != fabric::Status::success) throw PlatformError("an answer did not come");
    if (rpc::read_message<Reply>(message.buffer.bytes()).status != systems::mcas::kDone) {
      throw PlatformError("an operation failed");
    }
    side_.received.post(message.buffer_id);
    co_return message.buffer.bytes();
  }

  // The name of the pool, and the key of direct puts.
  static constexpr std::array name_{std::byte{'d'}};
  Thread& thread_;
  Bytes direct_;
  Side side_;
  fabric::RemoteAddress there_{};
  PoolHandle pool_ = systems::mcas::kNoPool;
  std::uint64_t next_ = 0;
  std::array<Bytes, kBatch> lengths_{};
};

// Collects the results of the rounds by name, and reports their medians.
class Rounds {
 public:
  void add(const std::string& name, double value) { values_[name].push_back(value); }
  void report(benchmark::State& state) {
    for (auto& [name, values] : values_) {
      const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
      std::nth_element(values.begin(), middle, values.end());
      state.counters[name] = *middle;
    }
  }

 private:
  std::map<std::string, std::vector<double>> values_;
};

// The nodes of the servers.
using Servers = std::array<std::atomic<const Node*>, 2>;

enum class Cores : std::uint8_t { one, any };

void with_both(benchmark::State& state, Bytes direct, Cores cores,
               const std::function<Task<>(Client& bare, Client& shard, const Servers&)>& use) {
  const objects::Config config{.memory = 64 * MiB + 4 * direct,
                               .max_message_value = 64,
                               .sessions = 2,
                               .parameters = {{"queue_depth", std::uint64_t{kBatch}}}};
  ShmOptions options;
  options.node_count = 3;
  options.accounting = pmem::WriteMeter::Level::issued;
  ShmPlatform platform(std::move(options));
  const auto take_core = [cores] {
    if (cores == Cores::one) pin_this_thread({0});
  };
  Servers servers{};
  platform.start_service(kBareServer, 0, CompletionMode::event, [&](Thread& thread) {
    take_core();
    servers[kBareServer] = &thread.node;
    return answer(thread, direct);
  });
  platform.start_service(kShard, 0, CompletionMode::event, [&](Thread& thread) -> Task<> {
    take_core();
    servers[kShard] = &thread.node;
    const auto shard = systems::kMcasObjects.open(thread, "shard", config);
    co_await shard->serve();
  });
  platform.start(kClient, 0, CompletionMode::event, [&](Thread& thread) -> Task<> {
    take_core();
    Client bare(thread, direct);
    Client shard(thread, direct);
    co_await bare.connect(kBareServer);
    co_await shard.connect(kShard);
    co_await shard.create_pool(48 * MiB + 4 * direct);
    for (std::uint64_t i = 0; i < kKeys; i += kBatch) co_await shard.batch(RequestKind::put);
    co_await use(bare, shard, servers);
  });
  try {
    platform.run();
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
}

void of_requests(benchmark::State& state) {
  const RequestKind kind = state.range(0) != 0 ? RequestKind::put : RequestKind::get;
  Rounds rounds;
  with_both(state, 0, Cores::one,
            [&](Client& bare, Client& shard, const Servers& servers) -> Task<> {
              const auto cpu_time = [&](Client& client, NodeId server,
                                        std::uint8_t flags) -> Task<double> {
                const Picoseconds before = servers[server].load()->cpu_time();
                for (int i = 0; i < kBatches; ++i) co_await client.batch(kind, flags);
                const std::chrono::duration<double, std::nano> spent =
                    servers[server].load()->cpu_time() - before;
                co_return spent.count() / (kBatches * kBatch);
              };
              for ([[maybe_unused]] auto _ : state) {
                const double of_bare = co_await cpu_time(bare, kBareServer, 0);
                const double of_shard = co_await cpu_time(shard, kShard, 0);
                rounds.add("bare", of_bare);
                rounds.add("shard", of_shard);
                rounds.add("shard_to_bare", of_shard / of_bare);
                if (kind == RequestKind::get) continue;
                const double persisted = co_await cpu_time(bare, kBareServer, kPersist);
                rounds.add("bare_persist", persisted);
                rounds.add("shard_to_bare_persist", of_shard / persisted);
              }
            });
  rounds.report(state);
}
BENCHMARK(of_requests)->ArgName("put")->Arg(0)->Arg(1)->UseRealTime();

void of_direct_puts(benchmark::State& state) {
  Rounds rounds;
  with_both(state, static_cast<Bytes>(state.range(0)), Cores::any,
            [&](Client& bare, Client& shard, const Servers&) -> Task<> {
              const auto timed = [](Task<> task) -> Task<double> {
                const auto begin = std::chrono::steady_clock::now();
                co_await std::move(task);
                co_return std::chrono::duration<double, std::nano>(
                    std::chrono::steady_clock::now() - begin)
                    .count();
              };
              for ([[maybe_unused]] auto _ : state) {
                const double write = co_await timed(bare.write_and_have_flushed());
                const double read = co_await timed(bare.put_direct());
                const double put = co_await timed(shard.put_direct());
                rounds.add("write_and_flush", write);
                rounds.add("read_and_flush", read);
                rounds.add("put_direct", put);
                rounds.add("put_to_write", put / write);
                rounds.add("put_to_read", put / read);
              }
            });
  rounds.report(state);
}
BENCHMARK(of_direct_puts)->ArgName("length")->Arg(64 * KiB)->Arg(MiB)->UseRealTime();

}  // namespace
}  // namespace perdura::bench::micro
