// Message rings between processes of a machine.
#include "platform/message_ring.h"

#include <array>
#include <cstring>

#include "platform/base/error.h"
#include "tests/platform/conformance/conformance.h"

namespace perdura::conformance {

namespace {

constexpr RingShape kShape{.slots = 4, .message_size = 300};
constexpr std::uint64_t kMessages = 2000;

// Two processes of one machine, and a machine besides.
Options on_one_machine() { return {.node_count = 3, .machines = {0, 0, 2}}; }

// Lengths from 0 to the longest, so that messages take from one to several lines.
std::vector<std::byte> message_of(std::uint64_t number) {
  return pattern(number * 37 % (kShape.message_size + 1), static_cast<unsigned>(number));
}

using Room = std::array<std::byte, kShape.message_size>;

std::vector<std::byte> popped(const Room& room, Bytes length) {
  return {room.begin(), room.begin() + static_cast<std::ptrdiff_t>(length)};
}

Task<> push_numbers(RingProducer& producer, std::uint64_t first, std::uint64_t end) {
  for (std::uint64_t number = first; number < end; ++number) {
    const std::vector<std::byte> message = message_of(number);
    co_await producer.push(message);
  }
}

Task<> expect_numbers(RingConsumer& consumer, std::uint64_t first, std::uint64_t end) {
  Room room{};
  for (std::uint64_t number = first; number < end; ++number) {
    const Bytes length = co_await consumer.pop(room);
    EXPECT_EQ(popped(room, length), message_of(number)) << "message " << number;
  }
}

}  // namespace

TEST_P(Rings, MessagesArriveWholeAndInOrder) {
  const auto platform = make(on_one_machine());
  platform->start(0, 1, mode(), [](Thread& thread) -> Task<> {
    const auto producer = rings_of(thread.node).open_producer("ring", kShape);
    co_await push_numbers(*producer, 0, kMessages);
  });
  bool arrived = false;
  platform->start(1, 1, mode(), [&](Thread& thread) -> Task<> {
    const auto consumer = rings_of(thread.node).open_consumer("ring", kShape);
    co_await expect_numbers(*consumer, 0, kMessages);
    Room room{};
    EXPECT_FALSE(consumer->try_pop(room)) << "there are no more than were pushed";
    arrived = true;
  });
  platform->run();
  EXPECT_TRUE(arrived);
}

// Each waits for the other in turn, so that nearly every push wakes somebody up.
TEST_P(Rings, APushWakesWhoWaits) {
  constexpr std::uint64_t kRounds = 300;
  const auto platform = make(on_one_machine());
  const auto body = [](const char* out, const char* in, bool begins) {
    return [=](Thread& thread) -> Task<> {
      MessageRings& rings = rings_of(thread.node);
      const auto producer = rings.open_producer(out, kShape);
      const auto consumer = rings.open_consumer(in, kShape);
      for (std::uint64_t round = 0; round < kRounds; ++round) {
        if (begins) co_await push_numbers(*producer, round, round + 1);
        co_await expect_numbers(*consumer, round, round + 1);
        if (!begins) co_await push_numbers(*producer, round, round + 1);
      }
    };
  };
  platform->start(0, 1, mode(), body("there", "back", true));
  platform->start(1, 1, mode(), body("back", "there", false));
  platform->run();
}

TEST_P(Rings, AFullRingAndAnEmptyOneSaySo) {
  const auto platform = make(on_one_machine());
  platform->start(0, 1, mode(), [](Thread& thread) -> Task<> {
    MessageRings& rings = rings_of(thread.node);
    const auto producer = rings.open_producer("ring", kShape);
    const auto consumer = rings.open_consumer("ring", kShape);
    Room room{};
    for (std::uint64_t lap = 0; lap < 3; ++lap) {
      EXPECT_FALSE(consumer->try_pop(room));
      for (std::uint32_t i = 0; i < kShape.slots; ++i) {
        co_await push_numbers(*producer, i, i + 1);
      }
      EXPECT_FALSE(producer->try_push(message_of(0)));
      co_await expect_numbers(*consumer, 0, kShape.slots);
    }
    const std::vector<std::byte> too_long(kShape.message_size + 1);
    EXPECT_THROW(producer->try_push(too_long), UsageError);
    EXPECT_THROW(consumer->try_pop(std::span(room).first(kShape.message_size - 1)), UsageError);
  });
  platform->run();
}

// A ring goes on where it was, whoever opens its ends next.
TEST_P(Rings, AnEndThatIsOpenedAgainGoesOn) {
  const auto platform = make(on_one_machine());
  const auto barrier = platform->create_barrier(2);
  platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
    MessageRings& rings = rings_of(thread.node);
    auto producer = rings.open_producer("ring", kShape);
    co_await push_numbers(*producer, 0, 2);
    producer.reset();
    producer = rings.open_producer("ring", kShape);
    co_await push_numbers(*producer, 2, 3);
    auto consumer = rings.open_consumer("ring", kShape);
    co_await expect_numbers(*consumer, 0, 1);
    consumer.reset();
    producer.reset();
    co_await barrier->arrive_and_wait();
  });
  platform->start(1, 1, mode(), [&](Thread& thread) -> Task<> {
    co_await barrier->arrive_and_wait();
    MessageRings& rings = rings_of(thread.node);
    const auto producer = rings.open_producer("ring", kShape);
    const auto consumer = rings.open_consumer("ring", kShape);
    co_await push_numbers(*producer, 3, 5);
    EXPECT_FALSE(producer->try_push(message_of(5))) << "the ring is full";
    co_await expect_numbers(*consumer, 1, 5);
    Room room{};
    EXPECT_FALSE(consumer->try_pop(room));
  });
  platform->run();
}

TEST_P(Rings, AnEndHasOneOwnerAndARingOneShape) {
  const auto platform = make(on_one_machine());
  const auto barrier = platform->create_barrier(3);
  platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
    MessageRings& rings = rings_of(thread.node);
    const auto producer = rings.open_producer("ring", kShape);
    EXPECT_THROW(rings.open_producer("ring", kShape), UsageError);
    EXPECT_THROW(rings.open_producer("of nothing", RingShape{}), UsageError);
    co_await push_numbers(*producer, 0, 1);
    co_await barrier->arrive_and_wait();
    co_await barrier->arrive_and_wait();
  });
  platform->start(1, 1, mode(), [&](Thread& thread) -> Task<> {
    MessageRings& rings = rings_of(thread.node);
    co_await barrier->arrive_and_wait();
    EXPECT_THROW(rings.open_producer("ring", kShape), UsageError);
    const RingShape other{.slots = kShape.slots, .message_size = kShape.message_size + 1};
    EXPECT_THROW(rings.open_consumer("ring", other), UsageError);
    const auto consumer = rings.open_consumer("ring", kShape);
    co_await expect_numbers(*consumer, 0, 1);
    co_await barrier->arrive_and_wait();
  });
  platform->start(2, 1, mode(), [&](Thread& thread) -> Task<> {
    co_await barrier->arrive_and_wait();
    MessageRings& rings = rings_of(thread.node);
    const auto producer = rings.open_producer("ring", kShape);
    const auto consumer = rings.open_consumer("ring", kShape);
    Room room{};
    EXPECT_FALSE(consumer->try_pop(room)) << "the ring of another machine";
    co_await barrier->arrive_and_wait();
  });
  platform->run();
}

}  // namespace perdura::conformance
