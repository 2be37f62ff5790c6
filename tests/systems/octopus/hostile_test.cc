// A client that writes anything into the message pool, and names other clients and slots that do not
// exist: the server answers it or ends its connection, and nobody else is harmed.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <random>

#include "rpc/messages.h"
#include "tests/support/platforms.h"
#include "tests/support/seed.h"
#include "tests/systems/octopus/model.h"

namespace perdura::systems::octopus::test {
namespace {

using fs::test::Home;

constexpr std::uint32_t kSlots = 8;
constexpr NodeId kServer = 0;

// A connection that is made again whenever the server has ended it.
class Attack {
 public:
  Attack(Thread& thread, std::uint32_t seed)
      : thread_(thread),
        random_(seed),
        memory_(thread.node.create_region("attack", kSlots * kAnswerRoom + kRequestRoom,
                                          pmem::Medium::dram)),
        registered_(thread.endpoint.register_memory(*memory_, fabric::Access::remote_all)) {}

  Task<> once() {
    if (!queue_pair_ || !queue_pair_->connected()) co_await connect();
    if (!queue_pair_) co_return;
    const fabric::LocalBuffer message = registered_.local(kSlots * kAnswerRoom, kRequestRoom);
    compose(message.bytes());
    const std::uint32_t client = random_() % 8 == 0 ? random_() % 4 : welcome_.client;
    const std::uint32_t slot = random_() % 16 == 0 ? random_() % 1000 : random_() % kSlots;
    const fabric::RemoteAddress into{{welcome_.pool_key},
                                     welcome_.pool_offset + slot % kSlots * kRequestRoom};
    fabric::Completion sent;
    if (random_() % 64 == 0) {
      sent = co_await queue_pair_->send(message.first(random_() % kRequestRoom));
    } else {
      const std::uint32_t immediate = random_() % 16 == 0 ? random_() : immediate_of(client, slot);
      sent = co_await queue_pair_->write_with_immediate(message, into, immediate);
    }
    ++sent_;
    while (const auto answer = completions_.try_next()) {
      if (answer->status != fabric::Status::success) {
        queue_pair_.reset();
        co_return;
      }
      ++answers_;
      immediates_->post({}, answer->buffer_id);
    }
    if (!sent) queue_pair_.reset();
  }
  int connections() const { return connections_; }
  int sent() const { return sent_; }
  int answers() const { return answers_; }

 private:
  // Mostly a request with one field that makes no sense.
  void compose(std::span<std::byte> bytes) {
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    if (random_() % 8 == 0) return;
    Request request{.kind = static_cast<RequestKind>(random_() % kRequestKinds),
                    .path_length = static_cast<std::uint32_t>(random_() % 8),
                    .offset = random_() % 4 == 0 ? some() : random_() % 1000,
                    .length = random_() % 4 == 0 ? some() : random_() % 1000};
    if (random_() % 16 == 0) request.path_length = random_();
    if (random_() % 16 == 0) request.kind = static_cast<RequestKind>(random_());
    rpc::write_message(bytes, request);
    if (random_() % 2 == 0) {
      const std::string_view path = "h/a/b/cd";
      std::memcpy(bytes.data() + sizeof request, path.data(), path.size());
    }
    // Whoever can connect may change everything, so it must not name what the other client has.
    std::byte& first = bytes[sizeof request];
    if (first == std::byte{'p'}) first = std::byte{'h'};
  }
  std::uint64_t some() { return (std::uint64_t{random_()} << 32) | random_(); }

  Task<> connect() {
    queue_pair_.reset();
    immediates_ = thread_.endpoint.create_receive_queue(kSlots);
    for (std::uint32_t i = 0; i < kSlots; ++i) immediates_->post({}, i);
    Hello hello{kProtocolVersion, registered_.key.value, kSlots};
    if (random_() % 8 == 0) hello.answers_key = random_();
    if (random_() % 8 == 0) hello.slots = random_();
    if (random_() % 16 == 0) hello.version = random_();
    const auto bytes = rpc::bytes_of(hello);
    fabric::Connection made = co_await thread_.endpoint.connect(
        {kServer, 0}, {immediates_.get(), &completions_}, {bytes.begin(), bytes.end()});
    queue_pair_ = std::move(made.queue_pair);
    if (!queue_pair_) co_return co_await yield();
    welcome_ = rpc::read_message<Welcome>(made.private_data);
    ++connections_;
  }

  Thread& thread_;
  std::mt19937 random_;
  std::unique_ptr<pmem::Region> memory_;
  fabric::MemoryRegion registered_;
  fabric::CompletionQueue completions_;
  std::unique_ptr<fabric::ReceiveQueue> immediates_;
  std::unique_ptr<fabric::QueuePair> queue_pair_;
  Welcome welcome_{};
  int connections_ = 0;
  int sent_ = 0;
  int answers_ = 0;
};

class OctopusAttackOn : public testing::TestWithParam<std::string> {};

TEST_P(OctopusAttackOn, MalformedRequestsHarmNobodyElse) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(fmt::format("PERDURA_TEST_SEED={}", seed));
  const auto platform = perdura::test::make_platform(GetParam(), fs::test::nodes_for(kOctopus, 2));
  Home home(kOctopus, {.size = 32 * MiB});
  home.start(*platform);
  std::atomic<bool> ended{false};
  // How fast one thread gets on beside the other depends on the machine, so the operations go on until
  // there have been enough requests.
  std::atomic<bool> has_attacked{false};
  platform->start(home.client(0), 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await home.make(thread, {});
    const auto client = co_await client_of(home, thread);
    Model model;
    EXPECT_EQ(error_of(co_await client->make_directory("p", 1)), std::errc{});
    model.create("p", true, 1);
    RandomPaths paths(*client, model, "p", seed);
    for (int i = 0; (i < 3000 || !has_attacked) && !HasFailure(); ++i) co_await paths.step();
    co_await expect_tree(*client, model, "p");
    ended = true;
    EXPECT_EQ(co_await home.audit(), "");
  });
  platform->start(home.client(1), 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await home.wait();
    Attack attack(thread, seed + 1);
    while (!ended) {
      co_await attack.once();
      co_await yield();
      has_attacked = attack.sent() > 100 && attack.connections() > 5 && attack.answers() > 10;
    }
    EXPECT_TRUE(has_attacked);
  });
  platform->run();
}

INSTANTIATE_TEST_SUITE_P(Platforms, OctopusAttackOn,
                         testing::ValuesIn(perdura::test::platform_names()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace perdura::systems::octopus::test
