// A client that sends anything: the server answers it or ends its connection, and nobody else is
// harmed.
#include <atomic>
#include <cstring>
#include <random>

#include <fmt/format.h>

#include "tests/support/seed.h"
#include "tests/systems/novad/support.h"

namespace perdura::systems::novad::test {
namespace {

// A connection that is made again whenever the server has ended it.
class Attack {
 public:
  Attack(Thread& thread, std::uint32_t seed)
      : thread_(thread),
        random_(seed),
        memory_(
            thread.node.create_region("attack", (1 + kCalls) * kMessageRoom, pmem::Medium::dram)),
        registered_(thread.endpoint.register_memory(*memory_, fabric::Access::remote_all)) {}

  Task<> once() {
    if (!queue_pair_ || !queue_pair_->connected()) co_await connect();
    if (!queue_pair_) co_return;
    const fabric::LocalBuffer message = registered_.local(0, kMessageRoom);
    const std::uint32_t length = compose(message.bytes());
    const fabric::Completion sent = co_await queue_pair_->send(message.first(length));
    ++sent_;
    while (const auto answer = completions_.try_next()) {
      if (answer->status != fabric::Status::success) {
        queue_pair_.reset();
        co_return;
      }
      ++answers_;
      post(answer->buffer_id);
    }
    if (!sent) queue_pair_.reset();
  }
  bool has_attacked() const { return sent_ > 200 && connections_ > 5 && answers_ > 10; }

 private:
  // Mostly a request with a field that makes no sense. The other client has what begins with "p",
  // and inodes that are named by no number below.
  std::uint32_t compose(std::span<std::byte> bytes) {
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    if (random_() % 8 == 0) return static_cast<std::uint32_t>(random_() % bytes.size());
    const std::uint32_t body = random_() % 200;
    MessageHeader header{
        .request = static_cast<Request>(random_() % kRequests),
        .call = static_cast<std::uint32_t>(random_() % kCalls),
        .inode = std::array<std::uint64_t, 3>{0, 1000 + random_(), some()}[random_() % 3],
        .length = body,
        .room_key = registered_.key.value,
        .room_size = kMessageRoom};
    if (random_() % 16 == 0) header.request = static_cast<Request>(random_());
    if (random_() % 16 == 0) header.call = static_cast<std::uint32_t>(random_());
    if (random_() % 16 == 0) header.length = some();
    if (random_() % 8 == 0) header.is_in_room = 1;
    if (random_() % 16 == 0) header.room_key = static_cast<std::uint32_t>(random_());
    if (random_() % 16 == 0) header.room_size = some();
    rpc::write_message(bytes, header);
    if (random_() % 2 == 0) std::memset(bytes.data() + sizeof header, 0, body);
    return static_cast<std::uint32_t>(sizeof header + body);
  }
  std::uint64_t some() { return (std::uint64_t{random_()} << 32) | random_(); }
  void post(std::uint64_t index) {
    replies_->post(registered_.local((1 + index) * kMessageRoom, kMessageRoom), index);
  }

  Task<> connect() {
    queue_pair_.reset();
    replies_ = thread_.endpoint.create_receive_queue(kCalls);
    for (std::uint32_t i = 0; i < kCalls; ++i) post(i);
    Hello hello{.version = kProtocolVersion};
    if (random_() % 8 == 0) hello.version = static_cast<std::uint32_t>(random_());
    if (random_() % 8 == 0) hello.purpose = static_cast<Purpose>(random_());
    const auto bytes = rpc::bytes_of(hello);
    std::vector<std::byte> data(bytes.begin(), bytes.end());
    fabric::Connection made = co_await thread_.endpoint.connect(
        {kServer, 0}, {replies_.get(), &completions_}, std::move(data));
    queue_pair_ = std::move(made.queue_pair);
    if (!queue_pair_) co_return co_await yield();
    ++connections_;
  }

  Thread& thread_;
  std::mt19937 random_;
  std::unique_ptr<pmem::Region> memory_;
  fabric::MemoryRegion registered_;
  fabric::CompletionQueue completions_;
  std::unique_ptr<fabric::ReceiveQueue> replies_;
  std::unique_ptr<fabric::QueuePair> queue_pair_;
  int connections_ = 0;
  int sent_ = 0;
  int answers_ = 0;
};

class NovadAttack : public testing::TestWithParam<std::string> {};

TEST_P(NovadAttack, HarmsNobodyElse) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(fmt::format("PERDURA_TEST_SEED={}", seed));
  const auto platform = perdura::test::make_platform(GetParam(), nodes_for(kNovad, 2));
  Home home(kNovad, {.size = 4 * MiB, .threads = 2});
  home.start(*platform);
  std::atomic<bool> ended{false};
  std::atomic<bool> has_attacked{false};
  platform->start(home.client(0), 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await home.make(thread, {});
    const auto files = co_await home.mount(thread);
    const auto session = files->attach(thread);
    const fs::InodeNumber file = co_await open_new(*session, "p", filled(9000, 'a'));
    for (int i = 0; (i < 300 || !has_attacked) && !HasFailure(); ++i) {
      const char letter = static_cast<char>('a' + i % 26);
      EXPECT_TRUE((co_await session->write(file, 0, filled(9000, letter), {})).has_value());
      EXPECT_EQ(co_await text_of(*session, file, 8998, 9), std::string(2, letter));
      EXPECT_EQ(co_await text_of(*session, file, 4000, 2), std::string(2, letter));
    }
    ended = true;
    EXPECT_EQ(co_await home.audit(), "");
  });
  platform->start(home.client(1), 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await home.wait();
    Attack attack(thread, seed + 1);
    while (!ended) {
      co_await attack.once();
      co_await yield();
      has_attacked = attack.has_attacked();
    }
    EXPECT_TRUE(has_attacked);
  });
  platform->run();
}

INSTANTIATE_TEST_SUITE_P(Platforms, NovadAttack, testing::ValuesIn(perdura::test::platform_names()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace perdura::systems::novad::test
