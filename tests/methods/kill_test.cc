// Real processes on shared memory, killed by SIGKILL at random moments: the requester, often in the
// middle of an update, and the responder. Nothing acknowledged is lost, and "b" is not without "a".
#include <atomic>

#include "platform/base/error.h"
#include "tests/methods/support.h"
#include "tests/support/kill_loop.h"
#include "tests/support/wait_until.h"

namespace perdura::methods::test {
namespace {

using perdura::test::KillTest;
using perdura::test::plain_name;
using perdura::test::Processes;
using perdura::test::SharedMemory;
using perdura::test::StepsBeforeKill;
using perdura::test::wait_until;

constexpr StepsBeforeKill kSteps{50, 350};

// What outlives the processes.
struct Shared {
  std::atomic<std::uint64_t> begun{0};  // the requester's; so that the next one goes on behind it
  std::atomic<std::uint64_t> acknowledged{0};
  std::atomic<std::uint64_t> wrong{0};
  std::atomic<std::uint64_t> checks{0};
  std::atomic<std::uint64_t> looks{0};  // of these, by a requester that has just connected
};

class Cluster {
 public:
  explicit Cluster(const std::string& method)
      : shared_(new (memory_.bytes().data()) Shared),
        processes_("persistence-kill-" + method),
        setup_(setup_of(find_method(method), pmem::Medium::pm)) {}

  Shared& shared() { return *shared_; }
  Processes& processes() { return processes_; }

  // The responder; it looks at what it finds, while no requester is connected.
  pid_t start_responder() {
    return processes_.start(0, [this](Thread& thread) -> Task<> {
      const auto region = open_or_create(thread.node, "pool", History::kRegion);
      const auto responder = std::make_shared<Responder>(thread, *region, setup_);
      check(*region);
      co_await responder->serve();
    });
  }
  pid_t start_requester() {
    return processes_.start(1, [this](Thread& thread) -> Task<> {
      Shared& shared = *shared_;
      for (;;) {
        std::unique_ptr<RemotePersister> persister;
        try {
          persister = co_await RemotePersister::connect(thread, {0, 0}, 0, setup_);
        } catch (const PlatformError&) {
          continue;
        }
        if (!co_await look(*persister)) continue;
        // An update whose outcome is unknown is made again.
        std::uint64_t i = shared.acknowledged;
        for (;;) {
          shared.begun = ++i;
          if (!co_await History::update(*persister, i)) break;
          shared.acknowledged = i;
        }
      }
    });
  }

  // Waits until a requester has connected for the time number `looks`, and then made so many
  // updates.
  bool progress(std::uint64_t looks, std::uint64_t updates) {
    if (!wait_until([&] { return shared_->looks >= looks; })) return false;
    const std::uint64_t goal = shared_->acknowledged + updates;
    return wait_until([&] { return shared_->acknowledged >= goal; });
  }

 private:
  bool ordered() const { return setup_.method.update == Update::ordered; }

  void judge(const Buffer& image, std::uint64_t acknowledged, std::uint64_t begun) {
    if (!holds(image, acknowledged, begun, ordered())) ++shared_->wrong;
    ++shared_->checks;
  }

  // The responder, before it serves. A requester that lives may not know yet that the one before is
  // dead, and go on for a while.
  void check(const pmem::Region& region) {
    Shared& shared = *shared_;
    for (;;) {
      const std::uint64_t acknowledged = shared.acknowledged;
      const Buffer image = contents(region);
      const std::uint64_t begun = shared.begun;
      if (begun > acknowledged + 1) continue;
      return judge(image, acknowledged, begun);
    }
  }

  // The requester, before it goes on; false if the connection breaks.
  Task<bool> look(RemotePersister& persister) {
    Buffer image(History::kRegion);
    for (Bytes at = 0; at < image.size(); at += kCacheLine) {
      const std::span<std::byte> line = std::span(image).subspan(at, kCacheLine);
      if (!co_await persister.read(at, line)) co_return false;
    }
    judge(image, shared_->acknowledged, shared_->begun);
    ++shared_->looks;
    co_return true;
  }

  SharedMemory memory_{sizeof(Shared)};
  Shared* shared_;
  Processes processes_;
  PersisterSetup setup_;
};

class Kill : public KillTest<const char*> {};
// Of each carrier one that the responder acknowledges, and one that it does not.
INSTANTIATE_TEST_SUITE_P(Methods, Kill,
                         testing::Values("ordered-write-message", "ordered-write-flush",
                                         "ordered-write-imm-message", "ordered-write-imm-flush",
                                         "ordered-send-copy-flush", "ordered-send-flush"),
                         plain_name<const char*>);

TEST_P(Kill, TheRequesterAgainAndAgain) {
  Cluster cluster(GetParam());
  cluster.start_responder();
  ASSERT_NO_FATAL_FAILURE(kill_again_and_again(
      cluster.processes(), 20, kSteps, [&] { return cluster.start_requester(); },
      [&](auto round, auto updates) { return cluster.progress(round, updates); }));
  EXPECT_EQ(cluster.shared().wrong, 0U);
  EXPECT_GE(cluster.shared().checks, 20U);
}

TEST_P(Kill, TheResponderAgainAndAgain) {
  Cluster cluster(GetParam());
  cluster.start_requester();
  ASSERT_NO_FATAL_FAILURE(kill_again_and_again(
      cluster.processes(), 15, kSteps, [&] { return cluster.start_responder(); },
      [&](auto round, auto updates) { return cluster.progress(round, updates); }));
  EXPECT_EQ(cluster.shared().wrong, 0U);
  EXPECT_GE(cluster.shared().checks, 30U);
}

}  // namespace
}  // namespace perdura::methods::test
