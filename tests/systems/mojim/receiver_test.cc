// A copy's threads, and who sends to them.
#include "systems/mojim/receiver.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <span>

#include "methods/chooser.h"
#include "platform/sim/sim_platform.h"
#include "systems/mojim/parameters.h"
#include "systems/registry/registry.h"
#include "tests/support/platforms.h"

namespace perdura::systems::mojim {
namespace {

using services::MemoryConfig;
using services::MemoryRole;

constexpr std::uint32_t kLogSlots = 4;
constexpr Time kGiveUp = Time() + std::chrono::seconds(1);

constexpr Mode kMSync{"m-sync", "M-sync", Copies::mirror, true, false};

// Sends the requests with these ids of term 1, each a sync point of its own, as long as there is
// room for them. Whether all have been sent.
Task<bool> send(Thread& thread, Sender& sender, std::uint64_t first, std::uint64_t last) {
  const auto region =
      thread.node.create_region("request", sizeof(RequestHeader) + kWord, pmem::Medium::dram);
  const auto memory = thread.endpoint.register_memory(*region, fabric::Access::local);
  const fabric::LocalPieces request = memory.local(0, sizeof(RequestHeader) + kWord);
  for (std::uint64_t number = first; number <= last; ++number) {
    const RequestHeader header{.id = begin_of(1) + number, .length = kWord, .count = 1};
    region->write(0, std::as_bytes(std::span(&header, 1)));
    const bool sent = co_await sender.finish(request, header.id, true);
    if (!sent) co_return false;
  }
  co_return true;
}

// A mirror whose logs are small, and who sends to it.
class MojimReceiver : public testing::Test {
 protected:
  MojimReceiver() { config_.parameters = {{"connections", 2}, {"log_slots", kLogSlots}}; }
  void start_mirror() {
    for (fabric::Port log = 0; log < 2; ++log) {
      platform_.start_service(1, log, CompletionMode::polling, [&](Thread& thread) -> Task<> {
        if (!mirror_) mirror_ = system_.open(thread, "memory", config_, MemoryRole::mirror);
        const auto mine = mirror_;
        co_await mine->serve(thread);
      });
    }
  }
  std::unique_ptr<Sender> sender(Thread& thread, std::uint32_t log, Acknowledgment acknowledgment) {
    const Parameters parameters = Parameters::of(config_, kMSync);
    return std::make_unique<Sender>(thread, thread.endpoint, 1, log, Shape(config_, parameters),
                                    acknowledgment, is_lost_, parameters.timeout);
  }
  static Task<> connect(Sender& sender, std::uint64_t term) {
    const auto refusal = co_await sender.connect(begin_of(term), Hello::Contents::equal);
    EXPECT_TRUE(refusal && refusal->reason == Refusal::Reason::none);
  }

  const services::MemorySystem& system_ = find_memory_system("m-sync");
  MemoryConfig config_{.size = 64 * KiB, .completion = CompletionMode::polling};
  sim::SimPlatform platform_{sim::load_profile(perdura::test::profile_path("mojim-pmep")), 3};
  std::shared_ptr<services::MemoryReplica> mirror_;
  std::atomic<bool> is_lost_{false};
};

// Its log is full of what waits for a request that will not come, and nobody receives into it any
// more: it has to be told by the end of its connection.
TEST_F(MojimReceiver, WhoWaitsForRoomIsToldOfANewPrimary) {
  start_mirror();
  bool is_full = false;
  platform_.start(0, 100, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto sender = this->sender(thread, 0, Acknowledgment::device);
    co_await connect(*sender, 1);
    EXPECT_TRUE(co_await send(thread, *sender, 2, 1 + kLogSlots));
    is_full = true;
    EXPECT_FALSE(co_await send(thread, *sender, 2 + kLogSlots, 2 + kLogSlots));
    EXPECT_LT(thread.executor.now(), kGiveUp);
  });
  platform_.start(2, 100, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    while (!is_full) co_await sleep_for(kLook);
    co_await sleep_for(100 * kLook);  // until the copy has seen what has arrived
    const auto sender = this->sender(thread, 1, Acknowledgment::device);
    co_await connect(*sender, term_after(1, 2));
    co_await sleep_until(kGiveUp);
    is_lost_ = true;  // so that the first one does not wait for ever
  });
  platform_.run();
}

// Section 3.2.3. Its device goes on: what needs nothing else is sent as before.
TEST_F(MojimReceiver, ACopyWhoseProcessorStandsStillIsNoticed) {
  constexpr Time kStandsStill = Time() + std::chrono::milliseconds(100);
  constexpr Time kGoesOn = Time() + std::chrono::seconds(10);
  // A mirror that acknowledges by messages, in the end also to one who does not notice.
  config_.method = methods::choose({{{pmem::PersistenceDomain::dmp, true}, pmem::Medium::pm}},
                                   *system_.update, {});
  for (const std::uint32_t thread : {0, 1}) platform_.stall(1, thread, {{kStandsStill, kGoesOn}});
  start_mirror();
  for (const Acknowledgment acknowledgment : {Acknowledgment::device, Acknowledgment::message}) {
    const auto log = static_cast<fabric::Port>(acknowledgment == Acknowledgment::message);
    platform_.start(0, static_cast<fabric::Port>(100 + log), CompletionMode::polling,
                    [&, acknowledgment, log](Thread& thread) -> Task<> {
                      const auto sender = this->sender(thread, log, acknowledgment);
                      co_await connect(*sender, 1);
                      co_await sleep_until(kStandsStill + Milliseconds(1));
                      const Picoseconds timeout = Parameters::of(config_, kMSync).timeout;
                      const std::uint64_t first = 1 + log * (1 + kLogSlots);
                      EXPECT_FALSE(co_await send(thread, *sender, first, first + kLogSlots));
                      EXPECT_FALSE(sender->connected());
                      EXPECT_GE(thread.executor.now(), kStandsStill + timeout);
                      EXPECT_LT(thread.executor.now(), kStandsStill + 2 * timeout);
                    });
  }
  platform_.run();
}

// What is waited for takes longer than the timeout, and the copy's processor is at work.
TEST_F(MojimReceiver, ACopyThatIsAtWorkIsWaitedFor) {
  start_mirror();
  platform_.start(0, 100, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto sender = this->sender(thread, 0, Acknowledgment::device);
    co_await connect(*sender, 1);
    EXPECT_TRUE(co_await send(thread, *sender, 2, 1 + kLogSlots));
    EXPECT_TRUE(co_await send(thread, *sender, 2 + kLogSlots, 2 + kLogSlots));
    EXPECT_GE(thread.executor.now(), kGiveUp);
  });
  platform_.start(2, 100, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto sender = this->sender(thread, 1, Acknowledgment::device);
    co_await connect(*sender, 1);
    co_await sleep_until(kGiveUp);
    EXPECT_TRUE(co_await send(thread, *sender, 1, 1));  // for which the others wait
  });
  platform_.run();
}

}  // namespace
}  // namespace perdura::systems::mojim
