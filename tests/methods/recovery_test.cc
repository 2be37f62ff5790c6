// What recovery replays of receive buffers in persistent memory, and what it must not.
#include <functional>
#include <random>

#include "platform/base/error.h"
#include "tests/methods/support.h"

namespace perdura::methods::test {
namespace {

constexpr std::uint32_t kBuffers = 4;

class Recovery : public testing::Test {
 protected:
  Recovery() : setup_(setup_of(find_method("ordered-send-flush"), pmem::Medium::pm, kBuffers)) {}

  // Runs `body` on a node with a fresh target and ring.
  void run(const std::function<void(Node&, pmem::Region&)>& body) {
    const auto platform = perdura::test::make_platform("sim", 1);
    platform->start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto target = open_or_create(thread.node, "pool", History::kRegion);
      body(thread.node, *target);
      co_return;
    });
    platform->run();
  }

  // Update number i of the history as message number i.
  static Buffer message(std::uint64_t i, std::uint32_t generation) {
    const Buffer a = History::data(i);
    MessageHeader header{.sequence = i, .updates = kUpdateA | kUpdateB, .carries = 1};
    header.offset = {History::offset(i), History::kB};
    header.length = {static_cast<std::uint32_t>(a.size()), 8};
    Buffer bytes(message_size(header));
    std::copy(a.begin(), a.end(), bytes.begin() + sizeof header);
    std::memcpy(bytes.data() + data_offset(header, 1), &i, sizeof i);
    write_sealed_header(header, generation, bytes);
    return bytes;
  }
  static void put(MessageRing& ring, std::uint64_t i, const Buffer& bytes) {
    ring.region().write(ring.buffer_offset(0, i), bytes);
  }
  static Buffer expected(std::uint64_t n) { return History::after(n, true); }

  PersisterSetup setup_;
};

TEST_F(Recovery, ReplaysWholeMessagesInOrder) {
  for (std::uint64_t n = 0; n <= kBuffers; ++n) {
    run([&](Node& node, pmem::Region& target) {
      MessageRing ring(node, "pool", setup_);
      const std::uint32_t generation = ring.begin_generation(0, true);
      for (std::uint64_t i = 1; i <= n; ++i) put(ring, i, message(i, generation));
      EXPECT_EQ(ring.recover(target), n);
      EXPECT_EQ(contents(target), n == 0 ? Buffer(History::kRegion) : expected(n));
      EXPECT_EQ(ring.applied(0), n);
      EXPECT_EQ(ring.recover(target), 0U) << "once";
    });
  }
}

// Whichever byte of a message is wrong, neither it nor what comes after it is replayed.
TEST_F(Recovery, ReplaysNothingTorn) {
  const Buffer sound = message(2, 1);
  for (std::size_t at = 0; at < sound.size(); ++at) {
    run([&](Node& node, pmem::Region& target) {
      MessageRing ring(node, "pool", setup_);
      const std::uint32_t generation = ring.begin_generation(0, true);
      ASSERT_EQ(generation, 1U);
      for (std::uint64_t i = 1; i <= 3; ++i) put(ring, i, message(i, generation));
      Buffer torn = sound;
      torn[at] ^= std::byte{0x40};
      put(ring, 2, torn);
      EXPECT_EQ(ring.recover(target), 1U) << "byte " << at;
      EXPECT_EQ(contents(target), expected(1)) << "byte " << at;
    });
  }
}

// A message of which some words are still those of the message that was in its buffer before.
TEST_F(Recovery, ReplaysNoMixtureOfTwoMessages) {
  const Buffer old_message = message(2, 1);
  const Buffer new_message = message(2 + kBuffers, 1);
  std::mt19937 random(1);
  const std::size_t words = std::min(old_message.size(), new_message.size()) / kWord;
  for (int i = 0; i < 500; ++i) {
    run([&](Node& node, pmem::Region& target) {
      MessageRing ring(node, "pool", setup_);
      ring.begin_generation(0, true);
      ring.set_applied(0, 1 + kBuffers);
      Buffer mixture = new_message;
      std::size_t kept = 0;
      for (std::size_t word = 0; word < words; ++word) {
        const std::size_t at = word * kWord;
        if (random() % 2 == 0 || std::memcmp(&old_message[at], &new_message[at], kWord) == 0) {
          continue;
        }
        std::memcpy(&mixture[at], &old_message[at], kWord);
        ++kept;
      }
      put(ring, 2 + kBuffers, mixture);
      EXPECT_EQ(ring.recover(target), kept == 0 ? 1U : 0U);
    });
  }
}

TEST_F(Recovery, ReplaysNoGarbage) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 300; ++i) {
    run([&](Node& node, pmem::Region& target) {
      MessageRing ring(node, "pool", setup_);
      ring.begin_generation(0, true);
      Buffer garbage(ring.buffer_size());
      for (std::byte& byte : garbage) byte = static_cast<std::byte>(random());
      // Half of them with the beginning of a header.
      const MessageHeader header{.sequence = 1, .updates = kUpdateA, .carries = 1};
      if (i % 2 == 0) std::memcpy(garbage.data(), &header, offsetof(MessageHeader, offset));
      put(ring, 1, garbage);
      EXPECT_EQ(ring.recover(target), 0U);
      EXPECT_EQ(contents(target), Buffer(History::kRegion));
    });
  }
}

// What has been applied is not replayed, though it is whole: it would undo what came later, as here
// where message 5 took the buffer of message 1, and message 6 was lost on the way.
TEST_F(Recovery, ReplaysNothingThatHasBeenApplied) {
  run([&](Node& node, pmem::Region& target) {
    MessageRing ring(node, "pool", setup_);
    const std::uint32_t generation = ring.begin_generation(0, true);
    for (std::uint64_t i = 2; i <= 5; ++i) put(ring, i, message(i, generation));
    target.write(0, expected(4));
    ring.set_applied(0, 4);
    EXPECT_EQ(ring.recover(target), 1U);
    EXPECT_EQ(contents(target), expected(5));
  });
}

TEST_F(Recovery, ReplaysNothingOfAnEarlierConnection) {
  run([&](Node& node, pmem::Region& target) {
    MessageRing ring(node, "pool", setup_);
    const std::uint32_t earlier = ring.begin_generation(0, true);
    put(ring, 1, message(1, earlier));
    ring.begin_generation(0, true);
    EXPECT_EQ(ring.recover(target), 0U);
    EXPECT_EQ(contents(target), Buffer(History::kRegion));
  });
}

TEST_F(Recovery, ReplaysNothingOfAConnectionThatTheResponderAcknowledges) {
  run([&](Node& node, pmem::Region& target) {
    MessageRing ring(node, "pool", setup_);
    const std::uint32_t generation = ring.begin_generation(0, false);
    put(ring, 1, message(1, generation));
    EXPECT_EQ(ring.recover(target), 0U);
  });
}

TEST_F(Recovery, RefusesARingOfAnotherShape) {
  run([&](Node& node, pmem::Region&) {
    { MessageRing ring(node, "pool", setup_); }
    PersisterSetup other = setup_;
    other.receive_buffers = kBuffers * 2;
    try {
      MessageRing ring(node, "pool", other);
      ADD_FAILURE() << "opened";
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("ask for the same, or remove it"),
                std::string::npos);
    }
    node.open_region("pool.messages")->store(kWord, 0);
    EXPECT_THROW(MessageRing(node, "pool", setup_), UsageError);
    // Without its first word its creation was interrupted.
    node.open_region("pool.messages")->store(0, 0);
    MessageRing ring(node, "pool", setup_);
    EXPECT_EQ(ring.applied(0), 0U);
  });
}

}  // namespace
}  // namespace perdura::methods::test
