// What a requester is refused, and what becomes of one that does not keep to the protocol.
#include "platform/base/error.h"
#include "tests/methods/support.h"

namespace perdura::methods::test {
namespace {

class Requester : public testing::TestWithParam<std::string> {
 protected:
  // Runs `client` against a responder with this setup; the responder's region is checked at the
  // end.
  void run(const PersisterSetup& setup, const std::function<Task<>(Thread&)>& client,
           const std::function<void(const Buffer&)>& check = {}) {
    const auto platform = perdura::test::make_platform(GetParam(), 2);
    Buffer found;
    platform->start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto region = open_or_create(thread.node, "pool", History::kRegion);
      co_await std::make_shared<Responder>(thread, *region, setup)->serve();
    });
    platform->start(1, 1, CompletionMode::polling, client);
    platform->run();
    if (check) check(contents(*platform->local_node(0)->open_region("pool")));
  }

  static PersisterSetup setup(const char* method) {
    return setup_of(with_read_for_flush(find_method(method)), pmem::Medium::dram);
  }
};
INSTANTIATE_TEST_SUITE_P(All, Requester, testing::ValuesIn(perdura::test::platform_names()));

Task<UpdateError> error_of(RemotePersister& persister, UpdateRequest request) {
  const auto done = co_await persister.update(request);
  EXPECT_FALSE(done);
  co_return done ? UpdateError::disconnected : done.error();
}

TEST_P(Requester, IsToldWhatIsWrongWithAnUpdate) {
  const PersisterSetup agreed = setup("write-imm-flush");
  run(agreed, [&](Thread& thread) -> Task<> {
    const auto persister = co_await RemotePersister::connect(thread, {0, 0}, 0, agreed);
    const Buffer data(History::kLargestA + 1);
    const std::span<const std::byte> bytes(data);
    EXPECT_EQ(co_await error_of(*persister, {.a = {0, bytes}}), UpdateError::too_large);
    EXPECT_EQ(co_await error_of(*persister, {.a = {4, bytes.first(8)}}), UpdateError::misaligned);
    EXPECT_EQ(co_await error_of(*persister, {.a = {History::kRegion, bytes.first(1)}}),
              UpdateError::outside);
    EXPECT_EQ(co_await error_of(*persister, {.a = {History::kRegion - 8, bytes.first(9)}}),
              UpdateError::outside);
    EXPECT_EQ(co_await error_of(*persister, {.a = {~Bytes{7}, bytes.first(16)}}),
              UpdateError::outside);
    EXPECT_TRUE(co_await persister->update({.a = {History::kRegion - 8, bytes.first(8)}}))
        << "an error leaves the connection as it is";
  });
}

TEST_P(Requester, BuildsItsDataInPlace) {
  const PersisterSetup agreed = setup("send-copy-flush");
  run(
      agreed,
      [&](Thread& thread) -> Task<> {
        const auto persister = co_await RemotePersister::connect(thread, {0, 0}, 0, agreed);
        const std::span<std::byte> room = persister->room();
        EXPECT_EQ(room.size(), History::kLargestA);
        std::fill(room.begin(), room.end(), std::byte{7});
        EXPECT_TRUE(co_await persister->update({.a = {16, room.first(40)}}));
        Buffer back(40);
        EXPECT_TRUE(co_await persister->read(16, back));
        EXPECT_EQ(back, Buffer(40, std::byte{7}));
      },
      [](const Buffer& region) { EXPECT_EQ(region[55], std::byte{7}); });
}

TEST_P(Requester, IsRefusedIfTheResponderIsSetUpOtherwise) {
  const PersisterSetup agreed = setup("write-message");
  run(agreed, [&](Thread& thread) -> Task<> {
    PersisterSetup larger = agreed;
    larger.largest_a += 8;
    PersisterSetup other = setup("send-copy-flush");
    int refused = 0;
    for (const PersisterSetup& asked : {larger, other}) {
      try {
        co_await RemotePersister::connect(thread, {0, 0}, 0, asked);
      } catch (const OptionsDiffer& error) {
        const std::string message = error.what();
        EXPECT_NE(message.find("refuses session 0: it has method 'write-message'"),
                  std::string::npos)
            << message;
        EXPECT_NE(message.find("not method '" + asked.method.name), std::string::npos) << message;
        ++refused;
      }
    }
    const auto first = co_await RemotePersister::connect(thread, {0, 0}, 0, agreed);
    for (const std::uint32_t session : {0U, 1U}) {
      try {
        co_await RemotePersister::connect(thread, {0, 0}, session, agreed);
      } catch (const PlatformError&) {
        EXPECT_EQ(session, 0U) << "which is in use now, and perhaps not later";
        ++refused;
      } catch (const OptionsDiffer&) {
        EXPECT_EQ(session, 1U) << "which there never is";
        ++refused;
      }
    }
    EXPECT_EQ(refused, 4);
    const Buffer data(8, std::byte{1});
    EXPECT_TRUE(co_await first->update({.a = {0, data}}));
  });
}

// An update that is under way when the responder is about to end is ended, the requester learns of
// it, and nobody else is let in.
TEST_P(Requester, IsAskedToGoWhenTheResponderEnds) {
  for (const char* method : {"write-message", "write-flush", "ordered-send-copy-flush"}) {
    const PersisterSetup agreed = setup(method);
    const auto platform = perdura::test::make_platform(GetParam(), 2);
    std::uint64_t acknowledged = 0;
    std::uint64_t found = 0;
    platform->start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto region = open_or_create(thread.node, "pool", History::kRegion);
      const auto responder = std::make_shared<Responder>(thread, *region, agreed);
      thread.executor.spawn(responder->serve());
      // In the middle of updates: after some have begun to arrive.
      while (region->load(0) == 0) co_await sleep_for(Microseconds(1));
      EXPECT_TRUE(responder->has_requesters());
      responder->begin_end();
      while (responder->has_requesters()) co_await sleep_for(Microseconds(1));
      found = region->load(0);
    });
    platform->start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      auto persister = co_await RemotePersister::connect(thread, {0, 0}, 0, agreed);
      for (std::uint64_t i = 1; !persister->is_over(); ++i) {
        const auto word = std::as_bytes(std::span(&i, 1));
        UpdateRequest request{.a = {0, word}};
        if (agreed.method.update == Update::ordered) request.b = {64, word};
        const auto done = co_await persister->update(request);
        EXPECT_TRUE(done) << method << ": none is left in doubt";
        if (!done) co_return;
        acknowledged = i;
      }
      const Buffer data(8);
      EXPECT_EQ(co_await error_of(*persister, {.a = {0, data}}), UpdateError::disconnected);
      EXPECT_THROW(co_await RemotePersister::connect(thread, {0, 0}, 0, agreed), PlatformError);
      persister.reset();
    });
    platform->run();
    EXPECT_GE(acknowledged, 1U);
    EXPECT_EQ(found, acknowledged);
  }
}

// A session that has ended can be had again, and goes on where it was.
TEST_P(Requester, ConnectsAgain) {
  PersisterSetup agreed = setup("ordered-send-flush");
  agreed.receive_medium = pmem::Medium::pm;
  static constexpr std::uint64_t kRounds = 20;
  run(
      agreed,
      [&](Thread& thread) -> Task<> {
        for (std::uint64_t i = 1; i <= kRounds;) {
          std::unique_ptr<RemotePersister> persister;
          try {
            persister = co_await RemotePersister::connect(thread, {0, 0}, 0, agreed);
          } catch (const PlatformError&) {
            continue;  // the responder has not yet seen the end of the one before
          }
          for (std::uint64_t last = i + i % 3; i <= last; ++i) {
            EXPECT_TRUE(co_await History::update(*persister, i));
          }
          Buffer b(8);
          const std::uint64_t expected = i - 1;
          while (std::memcmp(b.data(), &expected, sizeof expected) != 0) {
            EXPECT_TRUE(co_await persister->read(History::kB, b));
          }
        }
      },
      [](const Buffer& region) {
        std::uint64_t b = 0;
        std::memcpy(&b, &region[History::kB], sizeof b);
        EXPECT_EQ(region, History::after(b, true));
        EXPECT_GE(b, kRounds);
      });
}

// A peer whose messages name what is not in the region, or are none, is disconnected; nothing of it
// is written.
TEST_P(Requester, IsDisconnectedIfItSendsGarbage) {
  const PersisterSetup agreed = setup("send-copy-flush");
  std::vector<Buffer> messages{Buffer(3), Buffer(sizeof(MessageHeader)),
                               Buffer(agreed.buffer_size(), std::byte{0xFF})};
  const auto add = [&](MessageHeader header) {
    Buffer bytes(sizeof header + 32, std::byte{1});
    write_header(header, bytes);
    messages.push_back(bytes);
  };
  add({.updates = kUpdateA, .carries = 1, .offset = {History::kRegion}, .length = {1}});
  add({.updates = kUpdateA, .carries = 1, .offset = {~std::uint64_t{0}}, .length = {8}});
  add({.updates = kUpdateA, .carries = 1, .length = {33}});
  add({.updates = kUpdateB, .carries = 1, .length = {0, ~0U}});
  add({.updates = 0, .carries = 1});
  add({.updates = 4, .carries = 1});
  add({.updates = kUpdateA, .carries = 2, .length = {8}});
  run(
      agreed,
      [&](Thread& thread) -> Task<> {
        const auto memory = thread.node.create_region("peer", 4096, pmem::Medium::dram);
        const auto registered = thread.endpoint.register_memory(*memory, fabric::Access::local);
        const Hello hello{.method = agreed.method_checksum(),
                          .largest_a = agreed.largest_a,
                          .largest_b = agreed.largest_b};
        const auto bytes = std::as_bytes(std::span(&hello, 1));
        for (const Buffer& message : messages) {
          const auto queue = thread.endpoint.create_receive_queue(1);
          queue->post(registered.local(2048, 64), 0);
          fabric::CompletionQueue completions;
          fabric::Connection connection;
          while (connection.queue_pair == nullptr) {
            connection = co_await thread.endpoint.connect(
                {0, 0}, {.receive_queue = queue.get(), .completions = &completions},
                std::vector<std::byte>(bytes.begin(), bytes.end()));
          }
          std::copy(message.begin(), message.end(), memory->data());
          co_await connection.queue_pair->send(
              registered.local(0, static_cast<std::uint32_t>(message.size())));
          const auto answer = co_await completions.next();
          EXPECT_EQ(answer.status, fabric::Status::disconnected);
        }
        thread.endpoint.deregister_memory(registered);
      },
      [](const Buffer& region) { EXPECT_EQ(region, Buffer(History::kRegion)); });
}

std::string refusal(const PersisterSetup& setup,
                    fabric::Capabilities device = {true, true, true, 0, 4096}) {
  try {
    check(setup, device);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(PersisterSetup, RefusesWhatCannotRun) {
  const auto of = [](const char* text) {
    return setup_of(read_method(text, "mine"), pmem::Medium::dram);
  };
  EXPECT_EQ(refusal(of("requester: write a; send &a; receive ack\n"
                       "responder: receive; flush a; send ack\n")),
            "");
  EXPECT_NE(refusal(of("requester: fetch-add a; completion\n")).find("can be proved, but not run"),
            std::string::npos);
  EXPECT_NE(refusal(of("requester: write a,b; flush; completion\n")).find("write a,b"),
            std::string::npos);
  EXPECT_NE(refusal(of("requester: write a; write b; flush-persistence a,b; completion\n"))
                .find("flush-persistence a,b"),
            std::string::npos);
  EXPECT_NE(refusal(of("requester: relaxed write a; flush; completion\n")).find("relaxed write a"),
            std::string::npos);
  EXPECT_NE(refusal(of("requester: send a; receive ack\n"
                       "responder: receive; stream a; fence; send ack\n"))
                .find("stream a"),
            std::string::npos);
  PersisterSetup setup = setup_of(find_method("ordered-write-atomic"), pmem::Medium::dram);
  EXPECT_EQ(refusal(setup), "");
  EXPECT_NE(refusal(setup, {false, true, true, 0, 4096}).find("FLUSH for global visibility"),
            std::string::npos);
  EXPECT_NE(refusal(setup, {true, true, false, 0, 4096}).find("ATOMIC WRITE"), std::string::npos);
  setup.largest_b = 16;
  EXPECT_NE(refusal(setup).find("takes 8 bytes, not 16"), std::string::npos);
  setup = setup_of(find_method("write"), pmem::Medium::dram);
  setup.largest_a = 8192;
  EXPECT_NE(refusal(setup).find("this device takes 4096"), std::string::npos);
  setup.largest_a = 0;
  EXPECT_NE(refusal(setup).find("at least one byte"), std::string::npos);
  setup.largest_a = 8;
  setup.receive_buffers = 0;
  EXPECT_NE(refusal(setup).find("at least one session"), std::string::npos);
  setup = setup_of(find_method("write-imm"), pmem::Medium::dram);
  EXPECT_EQ(refusal(setup), "");
  EXPECT_NE(refusal(setup, {.max_message = 4096, .write_with_immediate = false})
                .find("needs WRITE_WITH_IMM"),
            std::string::npos);
  EXPECT_NO_THROW(check_region(setup, kLargestImmediateRegion));
  EXPECT_THROW(check_region(setup, kLargestImmediateRegion + 1), UsageError);
}

}  // namespace
}  // namespace perdura::methods::test
