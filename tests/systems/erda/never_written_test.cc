// A client is told where to write a key's newest version and is then slower than another, which
// begins the next segment before the server dies. So nothing was written there, not even the key,
// and recovery examines the last segment only. Then the head is cleaned (section 4.4).
#include "platform/base/error.h"
#include "platform/faults/faulty_thread.h"
#include "platform/sim/failures.h"
#include "tests/support/explore.h"
#include "tests/systems/erda/support.h"

namespace perdura::systems::test {
namespace {

using perdura::sim::Explored;
using perdura::sim::Failure;
using perdura::sim::SimPlatform;
using perdura::test::explore_until_failure;

constexpr std::uint64_t kOtherKeys = 4;  // 1 to 4; key 0 is the one in question
constexpr std::uint64_t kPerSegment = 11;
constexpr Picoseconds kSlow = Milliseconds(1);

class NeverWritten {
 public:
  NeverWritten(Failure& failure, bool has_previous)
      : made_(perdura::test::make_platform("sim", 4)),
        platform_(static_cast<SimPlatform&>(*made_)),
        failure_(failure),
        has_previous_(has_previous) {}

  // The server dies, and dies again at the moment of the failure.
  void run() {
    failure_.enable(false);
    failure_.watch(platform_, [this](pmem::Choices&) {
      restart_server();
      start_checking(3);
    });
    start_server();
    platform_.start(1, 0, CompletionMode::polling,
                    [this](Thread& thread) { return write_slowly(thread); });
    platform_.start(2, 0, CompletionMode::polling,
                    [this](Thread& thread) { return be_faster(thread); });
    platform_.run();
    EXPECT_GT(checked_, 0);
  }

 private:
  void start_server() {
    platform_.start_service(0, 0, CompletionMode::polling,
                            [this](Thread& thread) { return serve(thread, config_, &gauge_); });
  }
  void restart_server() {
    platform_.kill(0);
    start_server();
  }

  // Each message of the second put leaves late: the request, then the WRITE.
  Task<> write_slowly(Thread& thread) {
    faults::FaultyThread slow(thread, {.slow = {kSlow, kSlow}});
    slow.enable(false);
    const auto session = co_await connect(slow.thread(), config_);
    if (has_previous_) {
      EXPECT_TRUE(co_await session->put(key_, previous_));
    }
    slow.enable(true);
    begun_ = thread.executor.now();
    const kv::Result<void> put = co_await session->put(key_, newest_);
    EXPECT_TRUE(!put && put.error() == kv::Error::disconnected);
  }

  Task<> be_faster(Thread& thread) {
    const auto session = co_await connect(thread, config_);
    while (!begun_) co_await sleep_for(Microseconds(1));
    co_await sleep_until(*begun_ + kSlow * 3 / 2);
    EXPECT_TRUE(co_await put_others(*session, kPerSegment));
    EXPECT_LT(thread.executor.now(), *begun_ + kSlow * 2);
    EXPECT_EQ(gauge_.now().cleanings + gauge_.now().cleanings_now, 0U);
    platform_.at(thread.executor.now() + Microseconds(1), [this] {
      restart_server();
      start_checking(2);
      failure_.enable(true);
    });
  }

  static Task<bool> put_others(kv::KvSession& session, std::uint64_t puts) {
    for (std::uint64_t i = 0; i < puts; ++i) {
      const std::uint64_t number = 1 + i % kOtherKeys;
      const Buffer key = key_of(number);
      const Buffer value = value_of(number, i, kValue);
      const kv::Result<void> put = co_await session.put(key, value);
      if (!put) co_return false;
    }
    co_return true;
  }

  // Puts other keys until the head has been cleaned, and then reads the key in question. Ends when
  // the server does.
  void start_checking(NodeId node) {
    platform_.start(node, 1, CompletionMode::polling, [this](Thread& thread) -> Task<> {
      std::unique_ptr<kv::KvSession> session;
      try {
        session = co_await connect(thread, config_);
      } catch (const PlatformError&) {
      }
      bool connected = session != nullptr;
      while (connected && gauge_.now().cleanings == 0) {
        connected = co_await put_others(*session, kOtherKeys);
      }
      if (!connected) co_return;
      Buffer into(kValue);
      const kv::Result<Bytes> got = co_await session->get(key_, into);
      if (!got && got.error() == kv::Error::disconnected) co_return;
      ++checked_;
      if (has_previous_) {
        EXPECT_TRUE(got) << to_string(got.error());
        EXPECT_TRUE(into == previous_);
      } else {
        EXPECT_TRUE(!got && got.error() == kv::Error::not_found);
      }
    });
  }

  const kv::KvConfig config_ = config_of({1, 4, 2 * KiB, 1 * KiB}, 1 + kOtherKeys);
  const Buffer key_ = key_of(0);
  const Buffer previous_ = value_of(0, 1, kValue);
  const Buffer newest_ = value_of(0, 2, kValue);
  std::unique_ptr<Platform> made_;
  SimPlatform& platform_;
  Failure& failure_;
  bool has_previous_;
  Gauge gauge_;
  std::optional<Time> begun_;  // the put that writes nothing
  int checked_ = 0;
};

void explore_never_written(bool has_previous) {
  const Explored explored = explore_until_failure({}, [&](Failure& failure) {
    SCOPED_TRACE(failure.text());
    NeverWritten(failure, has_previous).run();
  });
  std::cout << "the server died again at each of " << explored.crash_points << " moments\n";
}

TEST(NeverWritten, TheNewestVersion) { explore_never_written(true); }
TEST(NeverWritten, TheOnlyVersion) { explore_never_written(false); }

}  // namespace
}  // namespace perdura::systems::test
