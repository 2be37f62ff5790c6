// What a server says unasked reaches its clients, whether they wait for a reply or for nothing.
#include "rpc/notices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "rpc/calls.h"
#include "rpc/connect.h"
#include "rpc/receive_buffers.h"
#include "tests/support/platforms.h"

namespace perdura::rpc {
// Not an anonymous namespace: the types are in coroutines of other headers.
namespace notices_test {

constexpr std::uint32_t kClients = 3;
constexpr std::uint32_t kSlots = 32;  // more than notices, which a client may receive late
constexpr std::uint32_t kBuffers = 8;
constexpr fabric::Address kNoticeServer{0, 0};

struct Said {
  std::uint64_t is_notice = 0;
  std::uint64_t number = 0;
};

// The client's part that its task shares.
struct Listener {
  std::unique_ptr<pmem::Region> memory;
  fabric::MemoryRegion registered;
  ReceiveBuffers messages;
  fabric::CompletionQueue completions;
  Calls<std::uint64_t> calls;
  std::vector<std::uint64_t> notices;
  bool gone = false;

  explicit Listener(Thread& thread)
      : memory(
            thread.node.create_region("client", (kBuffers + 1) * kCacheLine, pmem::Medium::dram)),
        registered(thread.endpoint.register_memory(*memory, fabric::Access::local)) {
    messages.open(thread.endpoint, kBuffers);
    messages.post_all({registered, 0, kCacheLine, kCacheLine}, kBuffers);
    calls.open(1);
  }

  static Said message_of(const fabric::ReceiveCompletion& received) {
    return read_message<Said>(received.buffer.bytes());
  }
  static bool is_notice(const Said& said) { return said.is_notice != 0; }
  void take_notice(const Said& said) { notices.push_back(said.number); }
  void take_reply(const Said& said, const fabric::ReceiveCompletion& received) {
    messages.post(received.buffer_id);
    calls.deliver(0, said.number);
  }
  void ended() {
    gone = true;
    calls.fail();
  }

  Task<std::optional<std::uint64_t>> ask(fabric::QueuePair& queue_pair) {
    calls.expect(0);
    rpc::send(queue_pair, registered.local(kBuffers * kCacheLine, 8), 0);
    return calls.answer_to(0);
  }
};

// Answers every request with how many there were, and tells all sessions of each. It ends the
// connection instead of answering one more than `most`.
struct NoticeServer {
  struct Session {
    std::uint32_t number = 0;
    std::unique_ptr<fabric::QueuePair> queue_pair;
    bool is_free() const { return queue_pair == nullptr; }
  };
  fabric::CompletionQueue completions;
  SessionTable<Session> sessions{kClients + 1};  // one has no client
  ReceiveBuffers requests;
  NoticeBuffers<Said> notices;
  std::uint64_t served = 0;
  std::uint64_t most = 0;

  // Clients that still wait by then would do so for ever.
  Task<> give_up() {
    co_await sleep_for(std::chrono::minutes(1));
    for (Session& session : sessions) {
      if (session.is_free()) continue;
      sessions.forget(*session.queue_pair);
      session.queue_pair.reset();
    }
  }

  Task<> serve(Thread& thread) {
    const Bytes of_notices =
        NoticeBuffers<Said>::size(static_cast<std::uint32_t>(sessions.size()), kSlots);
    const Bytes first = 2 * kBuffers * kCacheLine;
    const auto memory = thread.node.create_region("server", first + of_notices, pmem::Medium::dram);
    const auto registered = thread.endpoint.register_memory(*memory, fabric::Access::local);
    requests.open(thread.endpoint, kBuffers);
    requests.post_all({registered, 0, kCacheLine, kCacheLine}, kBuffers);
    notices.open(registered, first, kSlots);
    thread.executor.spawn(
        accept_connections(thread.endpoint, [this](fabric::ConnectionRequest& request) {
          Session& session = *sessions.find_free();
          session.queue_pair = request.accept({requests.queue(), &completions}, {});
          sessions.connected(*session.queue_pair, session);
        }));
    thread.executor.spawn(give_up());
    for (;;) {
      const fabric::ReceiveCompletion request = co_await completions.next();
      Session* const found = sessions.of(request.queue_pair);
      if (found == nullptr) continue;
      Session& session = *found;
      if (request.status != fabric::Status::success || served == most) {
        sessions.forget(*session.queue_pair);
        session.queue_pair.reset();
        continue;
      }
      requests.post(request.buffer_id);
      ++served;
      const Said notice{1, served};
      notices.send_all(sessions, served % kSlots, notice);
      const auto reply = registered.local((kBuffers + session.number) * kCacheLine, sizeof(Said));
      write_message(reply.bytes(), Said{0, served});
      rpc::send(*session.queue_pair, reply, 0);
    }
  }
};

Task<> serve_at_most(std::uint64_t most, Thread& thread) {
  NoticeServer server;
  server.most = most;
  co_await server.serve(thread);
}

// Remembers what is sent; a device may read it any time later.
class RememberingQueuePair final : public fabric::QueuePair {
 public:
  explicit RememberingQueuePair(std::vector<Bytes>& sent) : sent_(sent) {}
  void post_unsignaled(const fabric::WorkRequest& request) override {
    sent_.push_back(request.local.first().offset);
  }
  bool connected() const override { return true; }
  fabric::Address peer() const override { return {}; }
  std::size_t in_line() const override { return 0; }

 private:
  void post(fabric::RdmaOperation&) override {}
  void abandon(fabric::RdmaOperation&) override {}
  std::vector<Bytes>& sent_;
};

TEST(NoticeBuffers, AreOfOneSessionAndSlotEach) {
  const auto platform = perdura::test::make_platform("sim", 1);
  std::vector<Bytes> sent;
  platform->start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    struct Receiver {
      std::uint32_t number = 0;
      std::unique_ptr<fabric::QueuePair> queue_pair;
      bool is_free() const { return queue_pair == nullptr; }
    };
    SessionTable<Receiver> receivers(kClients);
    const Bytes size = NoticeBuffers<Said>::size(kClients, kSlots);
    const auto memory = thread.node.create_region("notices", size, pmem::Medium::dram);
    const auto registered = thread.endpoint.register_memory(*memory, fabric::Access::local);
    NoticeBuffers<Said> notices;
    notices.open(registered, 0, kSlots);
    for (Receiver& receiver : receivers) {
      receiver.queue_pair = std::make_unique<RememberingQueuePair>(sent);
    }
    for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
      const Said notice{1, slot};
      notices.send_all(receivers, slot, notice);
    }
    co_return;
  });
  platform->run();
  ASSERT_EQ(sent.size(), kClients * kSlots);
  std::sort(sent.begin(), sent.end());
  for (std::size_t i = 0; i < sent.size(); ++i) EXPECT_EQ(sent[i], i * sizeof(Said));
}

class Notices : public testing::TestWithParam<std::string> {};

// One client asks; the others wait for nothing and hear all the same. The one that asks hears of
// each of its requests before it has the reply.
TEST_P(Notices, ReachAllSessionsInOrder) {
  constexpr std::uint64_t kRequests = 20;
  const auto platform = perdura::test::make_platform(GetParam(), kClients + 1);
  platform->start_service(0, 0, CompletionMode::event,
                          [](Thread& thread) { return serve_at_most(1000, thread); });
  const auto connected = platform->create_barrier(kClients);
  const auto asked = platform->create_barrier(kClients);
  std::vector<std::uint64_t> heard(kClients);
  for (std::uint32_t number = 0; number < kClients; ++number) {
    platform->start(number + 1, 1, CompletionMode::event, [&, number](Thread& thread) -> Task<> {
      const auto listener = std::make_shared<Listener>(thread);
      auto made = co_await rpc::connect(thread.endpoint, "the server", kNoticeServer,
                                        {listener->messages.queue(), &listener->completions}, {});
      thread.executor.spawn(receive_always(listener));
      co_await connected->arrive_and_wait();
      for (std::uint64_t i = 1; number == 0 && i <= kRequests; ++i) {
        const auto answer = co_await listener->ask(*made.queue_pair);
        EXPECT_EQ(answer, i);
        EXPECT_EQ(listener->notices.size(), i) << "a notice that was sent before the reply";
        if (!answer) break;
      }
      co_await asked->arrive_and_wait();
      while (listener->notices.size() < kRequests && !listener->gone) {
        co_await sleep_for(Microseconds(1));
      }
      for (std::uint64_t i = 0; i < listener->notices.size(); ++i) {
        EXPECT_EQ(listener->notices[i], i + 1);
      }
      heard[number] = listener->notices.size();
      // All have heard before anybody leaves.
      co_await connected->arrive_and_wait();
    });
  }
  platform->run();
  EXPECT_EQ(heard, std::vector<std::uint64_t>(kClients, kRequests));
}

// A notice to one session is heard by that one alone; the end of the connection ends the task.
TEST_P(Notices, ASessionThatHasEndedIsLeftOut) {
  const auto platform = perdura::test::make_platform(GetParam(), 3);
  platform->start_service(0, 0, CompletionMode::event,
                          [](Thread& thread) { return serve_at_most(5, thread); });
  const auto barrier = platform->create_barrier(2);
  const auto body = [&](Thread& thread) -> Task<> {
    const auto listener = std::make_shared<Listener>(thread);
    auto made = co_await rpc::connect(thread.endpoint, "the server", kNoticeServer,
                                      {listener->messages.queue(), &listener->completions}, {});
    thread.executor.spawn(receive_always(listener));
    co_await barrier->arrive_and_wait();
    if (thread.node.id() == 2) made.queue_pair.reset();
    co_await barrier->arrive_and_wait();
    if (thread.node.id() == 2) {
      co_await barrier->arrive_and_wait();
      EXPECT_TRUE(listener->notices.empty());
      co_return;
    }
    for (std::uint64_t i = 1; i <= 5; ++i) EXPECT_EQ(co_await listener->ask(*made.queue_pair), i);
    EXPECT_EQ(listener->notices.size(), 5U);
    const auto answer = co_await listener->ask(*made.queue_pair);
    EXPECT_FALSE(answer.has_value());
    EXPECT_TRUE(listener->gone);
    co_await barrier->arrive_and_wait();
  };
  for (const NodeId node : {1U, 2U}) platform->start(node, 1, CompletionMode::event, body);
  platform->run();
}

INSTANTIATE_TEST_SUITE_P(All, Notices, testing::Values("sim", "shm"),
                         [](const auto& test) { return test.param; });

}  // namespace notices_test
}  // namespace perdura::rpc
