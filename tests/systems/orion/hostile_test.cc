// A client that sends anything: the servers answer it or end its session, and nobody else is harmed.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "rpc/messages.h"
#include "systems/orion/orion.h"
#include "systems/orion/protocol/layout.h"
#include "systems/orion/protocol/messages.h"
#include "tests/services/fs/random_operations.h"
#include "tests/support/platforms.h"
#include "tests/support/seed.h"

namespace perdura::systems::orion::test {
namespace {

using fs::test::Home;
using fs::test::RandomOperations;

constexpr NodeId kMdsNode = 0;
constexpr NodeId kStoreNode = 1;
constexpr NodeId kHonest = 2;
constexpr NodeId kHostile = 3;
constexpr std::uint32_t kBuffers = 64;
constexpr Bytes kRoom = 1 * KiB;

using Bits = std::mt19937;
using Message = std::vector<std::byte>;
using Compose = std::function<Message(Bits&)>;

// A connection of the hostile client, made again whenever a server has ended it.
class Attack {
 public:
  Attack(Thread& thread, NodeId server)
      : thread_(thread),
        server_(server),
        memory_(thread.node.create_region("attack", kMessageRoom * 2 + kBuffers * kRoom,
                                          pmem::Medium::dram)),
        registered_(thread.endpoint.register_memory(*memory_, fabric::Access::remote_all)) {}

  Task<> send(const Message& message) {
    if (!queue_pair_ || !queue_pair_->connected()) co_await connect();
    if (!queue_pair_) co_return;
    const fabric::LocalBuffer buffer =
        registered_.local(0, static_cast<std::uint32_t>(message.size()));
    copy_bytes(buffer.bytes(), message);
    const fabric::Completion sent = co_await queue_pair_->send(buffer);
    if (!sent) {
      queue_pair_.reset();
      co_return;
    }
    ++sent_;
    while (const auto answer = completions_.try_next()) {
      if (answer->status != fabric::Status::success) continue;
      ++answers_;
      post(answer->buffer_id);
    }
  }
  int connections() const { return connections_; }
  int sent() const { return sent_; }
  int answers() const { return answers_; }

 private:
  void post(std::uint64_t number) {
    receives_->post(registered_.local(2 * kMessageRoom + number * kRoom, kRoom), number);
  }
  Task<> connect() {
    queue_pair_.reset();
    receives_ = thread_.endpoint.create_receive_queue(kBuffers);
    for (std::uint32_t i = 0; i < kBuffers; ++i) post(i);
    const Hello hello{.version = kProtocolVersion,
                      .peer = Peer::session,
                      .id = {server_ == kMdsNode ? 0 : ~std::uint64_t{0}, 0},
                      .epoch = ~std::uint64_t{0}};
    const auto bytes = rpc::bytes_of(hello);
    fabric::Connection made = co_await thread_.endpoint.connect(
        {server_, 0}, {receives_.get(), &completions_}, {bytes.begin(), bytes.end()});
    queue_pair_ = std::move(made.queue_pair);
    // All of its former sessions may still be ending.
    if (queue_pair_) {
      ++connections_;
    } else {
      co_await sleep_for(Microseconds(50));
    }
  }

  Thread& thread_;
  NodeId server_;
  std::unique_ptr<pmem::Region> memory_;
  fabric::MemoryRegion registered_;
  fabric::CompletionQueue completions_;
  std::unique_ptr<fabric::ReceiveQueue> receives_;
  std::unique_ptr<fabric::QueuePair> queue_pair_;
  int connections_ = 0;
  int sent_ = 0;
  int answers_ = 0;
};

// --- messages

std::uint64_t some(Bits& random, std::uint64_t small) {
  switch (random() % 4) {
    case 0:
      return 0;
    case 1:
      return (std::uint64_t{random()} << 32) | random();
    default:
      return random() % small;
  }
}

bool rarely(Bits& random) { return random() % 64 == 0; }

void fill(Bits& random, std::span<std::byte> bytes) {
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
}

// Cannot be a request: its length is another one than it says, or there is no such request.
Message malformed(Bits& random) {
  Message message(1 + random() % (kMessageRoom - 1));
  fill(random, message);
  if (message.size() < sizeof(MessageHeader)) return message;
  MessageHeader header;
  std::memcpy(&header, message.data(), sizeof header);
  header.request = static_cast<Request>(random() % (kLastRequest + 2));
  header.length = static_cast<std::uint32_t>(message.size());
  if (static_cast<std::uint8_t>(header.request) <= kLastRequest) header.length += 1 + random() % 9;
  std::memcpy(message.data(), &header, sizeof header);
  return message;
}

template <class Part>
void add(Message& message, const Part& part) {
  const std::size_t at = message.size();
  message.resize(at + sizeof part);
  std::memcpy(message.data() + at, &part, sizeof part);
}

void add_entries(Bits& random, Message& message) {
  for (std::uint32_t i = 1 + random() % 2; i > 0; --i) {
    nova::WriteEntry entry;
    entry.header.type = static_cast<nova::EntryType>(random() % (nova::kLastEntryType + 2));
    entry.header.flags = static_cast<std::uint8_t>(random() % 4);
    entry.header.lines = static_cast<std::uint16_t>(random() % 10 == 0 ? random() : 1);
    entry.header.mode = static_cast<std::uint32_t>(some(random, 0200000));
    entry.file_block = some(random, 8);
    entry.block = random() % 4 == 0 ? some(random, 8) : gpa_of(random() % 2, random() % 32);
    entry.count = some(random, 4);
    entry.size = some(random, 100'000);
    Message line(kCacheLine);
    std::memcpy(line.data(), &entry, sizeof entry);
    message.insert(message.end(), line.begin(), line.end());
  }
}

std::string some_name(Bits& random) {
  switch (random() % 8) {
    case 0:
      return {};
    case 1:
      return std::string(random() % 300, 'x');
    case 2:
      return {'a', '\0', 'b'};
    case 3:
      return random() % 2 == 0 ? ".." : "a/b";
    default:
      return std::string(1, static_cast<char>('a' + random() % 4));
  }
}

// A request whose form is right, with any values.
Message arbitrary(Bits& random) {
  MessageHeader header{.request = static_cast<Request>(random() % kLastRequest),
                       .flags = static_cast<std::uint8_t>(rarely(random) ? random() : 0),
                       .call = static_cast<std::uint16_t>(random() % (rarely(random) ? 99 : 16)),
                       .inode = some(random, 12),
                       .generation = some(random, 3),
                       .tail = some(random, 3),
                       .epoch = some(random, 3),
                       .forces = static_cast<std::uint32_t>(rarely(random) ? random() % 3 : 0)};
  Message rest;
  if (header.request == Request::commit) {
    add_entries(random, rest);
  } else {
    const std::string name = some_name(random);
    const std::string other = some_name(random);
    Message payload;
    if (header.request == Request::update)
      add_entries(random, payload);
    else
      payload.resize(random() % 64);
    if (header.request != Request::update) fill(random, payload);
    const Arguments arguments{.other = some(random, 12),
                              .seconds = static_cast<std::int64_t>(some(random, 9)),
                              .nanoseconds = static_cast<std::uint32_t>(some(random, 9)),
                              .mode = static_cast<std::uint32_t>(some(random, 0200000)),
                              .uid = static_cast<std::uint32_t>(some(random, 9)),
                              .gid = static_cast<std::uint32_t>(some(random, 9)),
                              .device = some(random, 9),
                              .name_length = static_cast<std::uint16_t>(name.size()),
                              .other_length = static_cast<std::uint16_t>(other.size()),
                              .payload_length = static_cast<std::uint32_t>(payload.size()),
                              .payload_key = static_cast<std::uint32_t>(some(random, 9)),
                              .how = static_cast<std::uint8_t>(random() % 5),
                              .present = static_cast<std::uint8_t>(random()),
                              .extended = static_cast<std::uint16_t>(some(random, 3)),
                              .payload_offset = some(random, 4096),
                              .accessed_seconds = static_cast<std::int64_t>(some(random, 9)),
                              .modified_seconds = static_cast<std::int64_t>(some(random, 9)),
                              .accessed_nanoseconds = static_cast<std::uint32_t>(some(random, 9)),
                              .modified_nanoseconds = static_cast<std::uint32_t>(some(random, 9))};
    add(rest, arguments);
    for (const std::string& text : {name, other}) {
      for (const char c : text) rest.push_back(static_cast<std::byte>(c));
    }
    if ((header.flags & kByReference) == 0) rest.insert(rest.end(), payload.begin(), payload.end());
  }
  for (std::uint32_t i = 0; i < header.forces; ++i) {
    add(rest, word_of({static_cast<std::uint32_t>(random() % 3), some(random, 3)}));
  }
  header.length = static_cast<std::uint32_t>(sizeof header + rest.size());
  Message message;
  add(message, header);
  message.insert(message.end(), rest.begin(), rest.end());
  return message;
}

Message to_store(Bits& random) {
  if (random() % 3 == 0) {
    Message message(1 + random() % kCacheLine);
    fill(random, message);
    return message;
  }
  Message message;
  add(message, ForceRequest{static_cast<std::uint32_t>(some(random, 40)),
                            static_cast<std::uint32_t>(some(random, 3)), some(random, 64)});
  return message;
}

// --- the honest client

// Random operations, compared with the specification.
Task<> compare(Thread& thread, Home& home, std::uint32_t seed, std::atomic<bool>& is_made,
               const std::atomic<bool>& is_over) {
  RandomOperations operations(thread, home, seed);
  co_await operations.begin();
  is_made = true;
  for (int done = 0; (done < 100 || !is_over) && !testing::Test::HasFailure(); ++done) {
    co_await operations.step();
  }
  co_await operations.check();
  for (std::size_t which = 0; which < 2; ++which) co_await operations.unmount(which);
}

// Its names are its own no more, but it is answered.
Task<> use(Thread& thread, Home& home, std::atomic<bool>& is_made,
           const std::atomic<bool>& is_over) {
  co_await home.make(thread, {});
  is_made = true;
  const auto files = co_await home.mount(thread);
  auto session = files->attach(thread);
  const auto done = [](const auto& result) {
    return result.has_value() || result.error() != std::errc::not_connected;
  };
  while (!is_over && !testing::Test::HasFailure()) {
    const auto made =
        co_await session->create(fs::kRootInode, "mine", {.mode = S_IFREG | 0644}, {});
    EXPECT_TRUE(done(made));
    if (made) {
      const auto written = co_await session->write(made->inode, 0, Message(5000), {});
      EXPECT_TRUE(done(written));
    }
    const auto removed = co_await session->unlink(fs::kRootInode, "mine", {});
    EXPECT_TRUE(done(removed));
    co_await yield();
  }
  session.reset();
  co_await files->unmount();
}

struct Attacked {
  NodeId server;
  Compose compose;
  bool is_harmless;  // nothing that it sends has an effect
};

void attack(const Attacked& attacked, int messages) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  Home home(kOrion, fs::test::config_of(kOrion, true));
  const auto platform = perdura::test::make_platform("sim", kHostile + 1);
  home.start(*platform);
  std::atomic<bool> is_made{false};
  std::atomic<bool> is_over{false};
  platform->start(kHonest, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    if (attacked.is_harmless) {
      co_await compare(thread, home, seed, is_made, is_over);
    } else {
      co_await use(thread, home, is_made, is_over);
    }
    while (!is_over) co_await sleep_for(Microseconds(10));
    // The last session of the hostile client ends.
    co_await sleep_for(Milliseconds(1));
    const std::string audit = co_await home.audit();
    EXPECT_EQ(audit, "");
  });
  platform->start(kHostile, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    while (!is_made) co_await sleep_for(Microseconds(10));
    Bits random(seed);
    std::optional<Attack> client;
    client.emplace(thread, attacked.server);
    while (client->sent() < messages) {
      co_await client->send(attacked.compose(random));
      if (rarely(random)) co_await sleep_for(Microseconds(50));  // answers arrive
    }
    if (attacked.server == kMdsNode) {
      EXPECT_GT(client->connections(), messages / 200) << "its sessions have not been ended";
    }
    if (!attacked.is_harmless) {
      EXPECT_GT(client->answers(), messages / 10);
    }
    client.reset();
    is_over = true;
  });
  platform->run();
}

TEST(OrionHostile, MalformedRequestsHaveNoEffect) { attack({kMdsNode, malformed, true}, 5'000); }

TEST(OrionHostile, ArbitraryRequestsHarmNobodysSession) {
  attack({kMdsNode, arbitrary, false}, 20'000);
}

TEST(OrionHostile, AnythingSentToAStoreHasNoEffect) { attack({kStoreNode, to_store, true}, 5'000); }

}  // namespace
}  // namespace perdura::systems::orion::test
