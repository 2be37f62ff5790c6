// Real processes on shared memory, killed by SIGKILL at random moments: the requester, often in the
// middle of an update, and the responder. Nothing acknowledged is lost, and "b" is not without "a".
#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>

#include "tests/systems/kill/processes.h"
#include "tests/systems/persistence/support.h"

namespace perdura::persistence::test {
namespace {

using systems::test::Processes;
using systems::test::SharedMemory;

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
        processes_("persistence-" + method, {}),
        setup_(setup_of(find_method(method), pmem::Medium::pm)) {}

  Shared& shared() { return *shared_; }
  void kill_process(pid_t process) { processes_.kill_process(process); }

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
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    const auto reaches = [&](const std::atomic<std::uint64_t>& count, std::uint64_t goal) {
      while (count < goal) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        sched_yield();
      }
      return true;
    };
    return reaches(shared_->looks, looks) &&
           reaches(shared_->acknowledged, shared_->acknowledged + updates);
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

class Kill : public testing::TestWithParam<const char*> {};
std::string plain_name(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
// Of each carrier one that the responder acknowledges, and one that it does not.
INSTANTIATE_TEST_SUITE_P(Methods, Kill,
                         testing::Values("ordered-write-message", "ordered-write-flush",
                                         "ordered-write-imm-message", "ordered-write-imm-flush",
                                         "ordered-send-copy-flush", "ordered-send-flush"),
                         plain_name);

TEST_P(Kill, TheRequesterAgainAndAgain) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  Cluster cluster(GetParam());
  cluster.start_responder();
  for (std::uint64_t i = 0; i < 20; ++i) {
    const pid_t requester = cluster.start_requester();
    ASSERT_TRUE(cluster.progress(i + 1, 50 + random() % 300)) << "after kill " << i;
    cluster.kill_process(requester);
  }
  EXPECT_EQ(cluster.shared().wrong, 0U);
  EXPECT_GE(cluster.shared().checks, 20U);
}

TEST_P(Kill, TheResponderAgainAndAgain) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  Cluster cluster(GetParam());
  cluster.start_requester();
  for (std::uint64_t i = 0; i < 15; ++i) {
    const pid_t responder = cluster.start_responder();
    ASSERT_TRUE(cluster.progress(i + 1, 50 + random() % 300)) << "after kill " << i;
    cluster.kill_process(responder);
  }
  EXPECT_EQ(cluster.shared().wrong, 0U);
  EXPECT_GE(cluster.shared().checks, 30U);
}

}  // namespace
}  // namespace perdura::persistence::test
