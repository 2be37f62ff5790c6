// Real processes on shared memory, killed by SIGKILL at random moments: the client that writes,
// often in the middle of its one-sided write, and the server. What the clients did and were told is
// recorded in memory that survives them, and is linearizable.
#include <algorithm>
#include <array>
#include <atomic>
#include <random>

#include "systems/registry/registry.h"
#include "tests/services/kv/conformance/recording.h"
#include "tests/support/kill_loop.h"
#include "tests/support/wait_until.h"
#include "tests/systems/kill/kv_processes.h"

namespace perdura::systems::test {
namespace {

using perdura::test::KillTest;
using perdura::test::plain_name;
using perdura::test::StepsBeforeKill;
using perdura::test::wait_until;

constexpr StepsBeforeKill kSteps{100, 600};
constexpr std::uint64_t kKeys = 8;
constexpr Bytes kValueSize = 4096;
// The reader does not get further ahead, so that its history has an end however long the other
// processes go without a core.
constexpr std::uint64_t kReadsAhead = 1'000'000;

// What the processes tell each other; it outlives each of them.
struct Shared {
  std::array<std::atomic<std::uint64_t>, kKeys> versions{};  // the newest that was begun
  std::atomic<std::uint64_t> writes{0};
  std::atomic<std::uint64_t> reads{0};
  std::atomic<std::uint64_t> read_limit{kReadsAhead};
  std::atomic<std::uint64_t> unexpected{0};  // errors other than "not found" and "disconnected"
};

class Cluster {
 public:
  explicit Cluster(const std::string& system)
      : shared_(new (memory_.bytes().data()) Shared),
        value_size_(find_kv_system(system).fit_value(kValueSize)),
        processes_(system, fit(find_kv_system(system), config())) {}

  Shared& shared() { return *shared_; }
  // Of the writers and of the reader. Ends all processes: one that went on would record a get after
  // the puts have been read here.
  history::History history() {
    processes_.kill_all();
    history::History all;
    all.add(kv::OperationLog::read(written_.bytes()));
    all.add(kv::OperationLog::read(read_.bytes()));
    return all;
  }

  pid_t start_server() { return processes_.start_server(); }
  pid_t start_writer() {
    return processes_.start(1, [this](Thread& thread) { return write(thread, *this); });
  }
  pid_t start_reader() {
    return processes_.start(2, [this](Thread& thread) { return read(thread, *this); });
  }
  KvProcesses& processes() { return processes_; }

  // Waits until the writer and the reader have got on by so many operations; false if they do not.
  bool progress(std::uint64_t writes, std::uint64_t reads) {
    const std::uint64_t write_goal = shared_->writes + writes;
    const std::uint64_t read_goal = shared_->reads + reads;
    shared_->read_limit = read_goal + kReadsAhead;
    return wait_until([&] { return shared_->writes >= write_goal && shared_->reads >= read_goal; });
  }

 private:
  static kv::KvConfig config() {
    return {.key_size = 16,
            .value_size = kValueSize,
            .max_value_size = kValueSize,
            .records = 100,
            .writes = 150'000,
            .sessions = 256,
            .parameters = {}};
  }

  static Task<> write(Thread& thread, Cluster& cluster) {
    Shared& shared = *cluster.shared_;
    TestFormat format;
    kv::OperationLog log(cluster.written_.bytes());
    for (;;) {
      const auto connection = co_await cluster.processes_.connect(thread);
      kv::RecordedSession session(*connection, 1, format, log);
      for (std::uint64_t i = 0;; ++i) {
        const std::uint64_t version = ++shared.versions[i % kKeys];
        const Buffer name = key_of(i % kKeys);
        const Buffer value = value_of(i % kKeys, version, cluster.value_size_);
        const auto put = co_await session.put(name, value);
        if (put) {
          ++shared.writes;
        } else {
          if (put.error() != kv::Error::disconnected) ++shared.unexpected;
          break;
        }
      }
    }
  }

  static Task<> read(Thread& thread, Cluster& cluster) {
    Shared& shared = *cluster.shared_;
    Buffer into(kValueSize);
    std::mt19937_64 random(1);
    TestFormat format;
    kv::OperationLog log(cluster.read_.bytes());
    for (;;) {
      const auto connection = co_await cluster.processes_.connect(thread);
      kv::RecordedSession session(*connection, 2, format, log);
      for (;;) {
        const std::uint64_t number = random() % kKeys;
        const Buffer name = key_of(number);
        const auto got = co_await session.get(name, into);
        if (!got && got.error() == kv::Error::disconnected) break;
        if (!got && got.error() != kv::Error::not_found) ++shared.unexpected;
        ++shared.reads;
        while (shared.reads >= shared.read_limit) co_await yield();
      }
    }
  }

  SharedMemory memory_{sizeof(Shared)};
  SharedMemory written_{kv::OperationLog::bytes_for(1'000'000)};
  SharedMemory read_{kv::OperationLog::bytes_for(50'000'000)};
  Shared* shared_;
  Bytes value_size_;
  KvProcesses processes_;
};

class Kill : public KillTest<std::string> {};

std::vector<std::string> system_names() {
  std::vector<std::string> names;
  for (const kv::KvSystem& system : kv_systems()) names.emplace_back(system.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, Kill, testing::ValuesIn(system_names()), plain_name<std::string>);

void expect_linearizable(const history::History& history) {
  const auto verdict = history::check(history);
  EXPECT_TRUE(verdict.accepted()) << describe(verdict);
}

TEST_P(Kill, TheWriterAgainAndAgain) {
  Cluster cluster(GetParam());
  cluster.start_server();
  cluster.start_reader();
  ASSERT_NO_FATAL_FAILURE(kill_again_and_again(
      cluster.processes(), 30, kSteps, [&] { return cluster.start_writer(); },
      [&](auto, auto writes) { return cluster.progress(writes, 50); }));
  ASSERT_TRUE(cluster.progress(0, 1000)) << "the reader must go on";
  EXPECT_EQ(cluster.shared().unexpected, 0U);
  const history::History history = cluster.history();
  expect_linearizable(history);
  const auto cut_off = std::count_if(history.operations().begin(), history.operations().end(),
                                     [](const auto& operation) {
                                       return operation.kind == history::Kind::put &&
                                              operation.outcome == history::Outcome::unknown;
                                     });
  EXPECT_GT(cut_off, 10) << "the writer should have been in the middle of a put";
}

TEST_P(Kill, TheServerAgainAndAgain) {
  Cluster cluster(GetParam());
  cluster.start_reader();
  cluster.start_writer();
  ASSERT_NO_FATAL_FAILURE(kill_again_and_again(
      cluster.processes(), 10, kSteps, [&] { return cluster.start_server(); },
      [&](auto, auto writes) { return cluster.progress(writes, 50); }));
  cluster.start_server();
  ASSERT_TRUE(cluster.progress(100, 1000));
  EXPECT_EQ(cluster.shared().unexpected, 0U);
  expect_linearizable(cluster.history());
}

}  // namespace
}  // namespace perdura::systems::test
