// Clients that violate the protocol: whatever they send, they get an error or lose their own
// connection, and nothing of other clients' pools changes or can be read.
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "platform/sim/sim_platform.h"
#include "rpc/connect.h"
#include "systems/mcas/parsed_request.h"
#include "systems/mcas/pools.h"
#include "tests/support/platforms.h"
#include "tests/support/seed.h"
#include "tests/systems/mcas/pools/support.h"

namespace perdura::systems::mcas {
namespace {

using test::as_key;
using test::pools_system;

using Bytestring = std::vector<std::byte>;

constexpr std::uint64_t kMessages = 1'000'000;
constexpr std::uint32_t kInFlight = 16;
constexpr std::string_view kVictim = "the victim's pool";
constexpr std::uint64_t kVictimKeys = 50;

objects::Config hostile_config() {
  return {.memory = MiB,
          .max_message_value = 200,
          .sessions = 6,
          .parameters = {{"queue_depth", std::uint64_t{kInFlight}},
                         {"max_key_size", 64},
                         {"direct_piece", 1024},
                         {"pools", 4}}};
}
const Welcome kLimits{0, kInFlight, 64, 200};

// What a hostile client may know: numbers that it was told, and those of others, which it has
// guessed.
struct Known {
  std::vector<PoolHandle> handles{kNoPool};
  fabric::RemoteKey memory;
  Bytes memory_size = 0;
};

// A request that is valid or nearly so, and then perhaps changed anywhere.
Bytestring message_from(std::mt19937_64& random, const Known& known, std::uint32_t id) {
  Request header;
  header.kind = static_cast<RequestKind>(random() % 20);
  header.flags = random() % 4 == 0 ? static_cast<std::uint8_t>(1U << random() % 7) : 0;
  header.id = id;
  header.pool = known.handles[random() % known.handles.size()];
  if (random() % 8 == 0) header.pool = random() % 4 == 0 ? random() : random() % (1 << 20);
  Bytestring key(random() % 5 == 0 ? random() % 70 : 1 + random() % 2,
                 static_cast<std::byte>('a' + random() % 3));
  Bytestring value;
  const auto set_value = [&](const auto& object) {
    const auto bytes = rpc::bytes_of(object);
    value.assign(bytes.begin(), bytes.end());
  };
  // What its kind needs; rarely what another one does.
  const auto kind = random() % 8 == 0 ? static_cast<RequestKind>(random() % 20) : header.kind;
  switch (kind) {
    case RequestKind::put:
      value.resize(random() % 220, std::byte{'v'});
      break;
    case RequestKind::create_pool:
      set_value(PoolSize{random() >> random() % 64});
      break;
    case RequestKind::put_direct:
    case RequestKind::get_direct:
    case RequestKind::put_direct_offset:
    case RequestKind::get_direct_offset: {
      Transfer transfer{random() % 4 == 0 ? random() % 64 : 0, random() % 4096, random() % 8192,
                        known.memory.value};
      if (random() % 8 == 0) transfer.value_offset = random();
      if (random() % 8 == 0) transfer.length = random() >> random() % 64;
      if (random() % 16 == 0) transfer.length = random() % 8 - transfer.value_offset;
      // A wrong range costs the connection, so it is not tried always.
      if (random() % 256 == 0) transfer.remote_offset = random() >> random() % 64;
      if (random() % 256 == 0) transfer.remote_key = static_cast<std::uint32_t>(random());
      set_value(transfer);
      break;
    }
    case RequestKind::find:
      set_value(Search{random() >> random() % 64, static_cast<objects::Match>(random() % 5)});
      break;
    case RequestKind::configure_pool: {
      constexpr std::array<std::string_view, 2> kCommands{"AddIndex::VolatileTree",
                                                          "RemoveIndex::"};
      const auto command = as_key(kCommands[random() % 2]);
      key.assign(command.begin(), command.end());
      break;
    }
    case RequestKind::pool_attributes:
    case RequestKind::close_pool:
    case RequestKind::statistics:
      if (random() % 8 != 0) key.clear();
      break;
    case RequestKind::invoke:
    case RequestKind::invoke_put: {
      value.resize(random() % 220, std::byte{'r'});
      Call call{random() % 300, random() % 8 == 0 ? random() >> random() % 64 : random() % 200};
      if (random() % 8 == 0) call.value_length = random() >> random() % 64;
      if (value.size() >= sizeof call) rpc::write_message(value, call);
      break;
    }
    default:
      break;
  }
  header.key_length = static_cast<std::uint32_t>(key.size());
  header.value_length = static_cast<std::uint32_t>(value.size());
  Bytestring message(header.size());
  rpc::write_message(message, header);
  std::copy(key.begin(), key.end(), message.begin() + sizeof header);
  std::copy(value.begin(), value.end(), message.end() - static_cast<std::ptrdiff_t>(value.size()));
  if (random() % 64 == 0) message[random() % message.size()] ^= std::byte{1} << random() % 8;
  if (random() % 512 == 0) message.resize(random() % (message.size() + 40));
  return message;
}

// Nothing that parse() accepts reaches beyond the message, and is_valid() says of all how it is.
TEST(Hostile, NoMessageIsReadBeyondItsEnd) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  std::array<std::uint64_t, 3> counts{};
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    Bytestring message = message_from(random, {}, static_cast<std::uint32_t>(random() % 20));
    if (i % 4 == 0) {
      for (auto changes = random() % 8; changes > 0 && !message.empty(); --changes) {
        message[random() % message.size()] = static_cast<std::byte>(random());
      }
    }
    const auto request = parse(message, kLimits);
    if (!request) {
      ++counts[0];
      continue;
    }
    ASSERT_LT(request->header.id, kInFlight);
    const std::byte* const end = message.data() + message.size();
    ASSERT_EQ(request->key.data(), message.data() + sizeof(Request));
    ASSERT_EQ(request->value.data(), request->key.data() + request->key.size());
    ASSERT_EQ(request->value.data() + request->value.size(), end);
    const bool valid = request->is_valid(kLimits);
    ++counts[valid ? 2 : 1];
    if (valid) {
      ASSERT_LE(request->key.size(), kLimits.max_key_size);
      ASSERT_LE(request->value.size(), std::max(kLimits.max_value_size, kLongestArgument));
      const RequestKind kind = request->header.kind;
      if (kind == RequestKind::invoke || kind == RequestKind::invoke_put) {
        ASSERT_EQ(request->call_request().data(), request->value.data() + sizeof(Call));
        ASSERT_EQ(request->call_value().data() + request->call_value().size(), end);
      }
    }
  }
  for (const std::uint64_t count : counts) EXPECT_GT(count, kMessages / 100);
}

// A connection without a client's care.
class RawConnection {
 public:
  explicit RawConnection(Thread& thread)
      : thread_(thread),
        region_(
            thread.node.create_region("raw messages", 2 * kInFlight * kRoom, pmem::Medium::dram)),
        messages_(thread.endpoint.register_memory(*region_, fabric::Access::local)) {}

  Task<> connect() {
    queue_pair_.reset();
    receives_ = thread_.endpoint.create_receive_queue(kInFlight);
    auto connection = co_await rpc::connect(thread_.endpoint, "the shard", {0, 0},
                                            {receives_.get(), &completions_},
                                            rpc::bytes_of(Hello{kProtocolVersion}));
    queue_pair_ = std::move(connection.queue_pair);
    for (std::uint32_t i = 0; i < kInFlight; ++i) post(i);
  }
  void send(std::uint32_t id, const Bytestring& message) {
    const auto buffer =
        messages_.local((kInFlight + id) * kRoom, static_cast<std::uint32_t>(message.size()));
    std::copy(message.begin(), message.end(), buffer.bytes().begin());
    fabric::WorkRequest request{.opcode = fabric::Opcode::send};
    request.local = buffer;
    queue_pair_->post_unsignaled(request);
  }
  // Nothing if the connection has ended.
  Task<std::optional<std::pair<Reply, Bytestring>>> receive() {
    const auto completion = co_await completions_.next();
    if (completion.status != fabric::Status::success) co_return std::nullopt;
    const auto bytes = completion.buffer.bytes();
    std::pair<Reply, Bytestring> reply{rpc::read_message<Reply>(bytes), {}};
    const auto value = bytes.subspan(sizeof(Reply));
    reply.second.assign(value.begin(), value.end());
    post(completion.buffer_id);
    co_return reply;
  }
  Task<PoolHandle> open(std::string_view name, std::uint8_t flags = 0) {
    Request header{.kind = RequestKind::create_pool, .flags = flags};
    header.key_length = static_cast<std::uint32_t>(name.size());
    header.value_length = sizeof(PoolSize);
    Bytestring message(header.size());
    rpc::write_message(message, header);
    std::copy_n(as_key(name).begin(), name.size(), message.begin() + sizeof header);
    rpc::write_message(std::span(message).subspan(sizeof header + name.size()),
                       PoolSize{256 * KiB});
    send(0, message);
    const auto reply = co_await receive();
    co_return reply && reply->first.status == kDone ? rpc::read_message<PoolHandle>(reply->second)
                                                    : kNoPool;
  }

 private:
  static constexpr Bytes kRoom = 512;
  void post(std::uint64_t id) { receives_->post(messages_.local(id * kRoom, kRoom), id); }

  Thread& thread_;
  std::unique_ptr<pmem::Region> region_;
  fabric::MemoryRegion messages_;
  fabric::CompletionQueue completions_;
  std::unique_ptr<fabric::ReceiveQueue> receives_;
  std::unique_ptr<fabric::QueuePair> queue_pair_;
};

// An offset and a length whose sum is small, since it goes around.
TEST(Hostile, APartThatGoesAroundIsInvalid) {
  const auto platform = perdura::test::make_platform("sim", 2);
  platform->start_service(0, 0, CompletionMode::polling, [](Thread& thread) -> Task<> {
    const auto shard = pools_system().open(thread, "shard", hostile_config());
    co_await shard->serve();
  });
  platform->start(1, 1, CompletionMode::polling, [](Thread& thread) -> Task<> {
    RawConnection connection(thread);
    co_await connection.connect();
    const PoolHandle pool = co_await connection.open("pool");
    const auto ask = [&](RequestKind kind, Value value) -> Task<ReplyStatus> {
      const Request header{.kind = kind,
                           .pool = pool,
                           .key_length = 3,
                           .value_length = static_cast<std::uint32_t>(value.size())};
      Bytestring message(header.size());
      rpc::write_message(message, header);
      std::copy_n(as_key("key").begin(), 3, message.begin() + sizeof header);
      std::copy(value.begin(), value.end(), message.begin() + sizeof header + 3);
      connection.send(0, message);
      const auto reply = co_await connection.receive();
      co_return reply ? reply->first.status : status_of(objects::Error::disconnected);
    };
    const Bytestring value(100);
    EXPECT_EQ(co_await ask(RequestKind::put, value), kDone);
    for (const std::uint64_t offset : {4, 50, 100}) {
      const Transfer transfer{offset, std::uint64_t{3} - offset};
      for (const RequestKind kind :
           {RequestKind::get_direct_offset, RequestKind::put_direct_offset}) {
        EXPECT_EQ(co_await ask(kind, rpc::bytes_of(transfer)), status_of(objects::Error::invalid));
      }
    }
  });
  platform->run();
}

struct Counts {
  std::map<ReplyStatus, std::uint64_t> replies;  // by status
  std::uint64_t lost_connections = 0;
  bool ended = false;
};

Task<> attack(Thread& thread, std::mt19937_64 random, std::uint64_t messages,
              const PoolHandle& victims, Counts& counts) {
  const auto region = thread.node.create_region("direct", 16 * KiB, pmem::Medium::dram);
  const auto memory = thread.endpoint.register_memory(
      *region, fabric::Access::remote_read | fabric::Access::remote_write);
  RawConnection connection(thread);
  for (std::uint64_t sent = 0; sent < messages;) {
    co_await connection.connect();
    Known known{{}, memory.key, memory.length};
    known.handles = {kNoPool, victims};
    known.handles.push_back(co_await connection.open("a"));
    known.handles.push_back(co_await connection.open("b", kReadOnly));
    known.handles.push_back(known.handles[2]);
    std::array<bool, kInFlight> used{};
    std::array<bool, kInFlight> at_victim{};
    for (;;) {
      for (std::uint32_t id = 0; id < kInFlight && sent < messages; ++id) {
        if (std::exchange(used[id], true)) continue;
        const Bytestring message = message_from(random, known, id);
        const auto header = rpc::read_message<Request>(message);
        const auto parsed = parse(message, kLimits);
        // A message that was changed may answer for another id, which it then has to itself.
        if (parsed && header.id != id) {
          used[id] = false;
          continue;
        }
        at_victim[id] = parsed && parsed->has_pool() && header.pool == victims;
        connection.send(id, message);
        ++sent;
      }
      if (sent >= messages && std::none_of(used.begin(), used.end(), [](bool u) { return u; })) {
        break;
      }
      const auto reply = co_await connection.receive();
      if (!reply) {
        ++counts.lost_connections;
        break;
      }
      const std::uint32_t id = reply->first.id;
      EXPECT_LT(id, kInFlight);
      if (id >= kInFlight) co_return;
      EXPECT_TRUE(used[id]) << "an answer to what was not asked";
      used[id] = false;
      ++counts.replies[reply->first.status];
      EXPECT_TRUE(!at_victim[id] || reply->first.status != kDone)
          << "another client's pool is used";
      EXPECT_LE(reply->first.status, status_of(objects::Error::disconnected));
    }
  }
  counts.ended = true;
}

std::string victims_value(std::uint64_t number) {
  return "what only the victim may change, number " + std::to_string(number);
}

TEST(Hostile, WhateverIsSentHarmsNobodyElse) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  std::cout << "PERDURA_TEST_SEED=" << seed << "\n";
  const auto made = perdura::test::make_platform("sim", 4);
  auto& platform = static_cast<perdura::sim::SimPlatform&>(*made);
  platform.start_service(0, 0, CompletionMode::polling, [](Thread& thread) -> Task<> {
    const auto shard = pools_system().open(thread, "shard", hostile_config());
    co_await shard->serve();
  });
  std::array<Counts, 2> counts;
  PoolHandle victims = kNoPool;
  const auto ready = std::shared_ptr<Platform::Barrier>(platform.create_barrier(3));
  // The victim's first handle is the first that the shard gives.
  platform.start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto session = co_await pools_system().connect(thread, {0, 0}, hostile_config());
    const auto pool = *co_await session->create_pool(kVictim, 256 * KiB, {});
    victims = PoolHandle{1} << 16;
    for (std::uint64_t i = 0; i < kVictimKeys; ++i) {
      // Keys that the attackers use, too.
      const std::string key(1 + i % 16, static_cast<char>('a' + i / 16));
      EXPECT_TRUE(co_await pool->put(as_key(key), as_key(victims_value(i)), {}));
    }
    co_await ready->arrive_and_wait();
    for (std::uint64_t i = 0; !counts[0].ended || !counts[1].ended; ++i) {
      const std::uint64_t number = i % kVictimKeys;
      const std::string key(1 + number % 16, static_cast<char>('a' + number / 16));
      const auto got = co_await pool->get(as_key(key));
      EXPECT_TRUE(got) << "the victim cannot read its pool";
      if (!got) co_return;
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(got->data()), got->size()),
                victims_value(number));
      co_await sleep_for(Microseconds(100));
    }
    EXPECT_EQ((co_await pool->attributes())->items, kVictimKeys);
  });
  for (std::size_t i = 0; i < counts.size(); ++i) {
    platform.start(static_cast<NodeId>(2 + i), 2, CompletionMode::polling,
                   [&, i](Thread& thread) -> Task<> {
                     co_await ready->arrive_and_wait();
                     co_await attack(thread, std::mt19937_64(seed + i), kMessages / counts.size(),
                                     victims, counts[i]);
                   });
  }
  platform.run();
  std::map<ReplyStatus, std::uint64_t> replies;
  std::uint64_t lost = 0;
  for (const Counts& of : counts) {
    lost += of.lost_connections;
    for (const auto& [status, count] : of.replies) replies[status] += count;
  }
  for (const auto& [status, count] : replies) {
    std::cout << (status == kDone ? "done" : to_string(objects::Error(status - 1))) << ": " << count
              << "\n";
  }
  std::cout << "lost connections: " << lost << "\n";
  EXPECT_GT(lost, 1000U);
  for (const objects::Error error :
       {objects::Error::invalid, objects::Error::no_permission, objects::Error::not_found,
        objects::Error::busy, objects::Error::exists}) {
    EXPECT_GT(replies[status_of(error)], 100U) << to_string(error);
  }
  EXPECT_GT(replies[kDone], kMessages / 50);
  const auto region = platform.local_node(0)->open_region("shard");
  Pools found(*region, Parameters::of(hostile_config()));
  EXPECT_EQ(found.audit(), "");
  EXPECT_EQ(found.open(kVictim).value()->engine->statistics().items, kVictimKeys);
}

}  // namespace
}  // namespace perdura::systems::mcas
