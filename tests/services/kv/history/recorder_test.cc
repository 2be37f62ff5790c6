// Recorders on real systems on all platforms, with planted faults, and where a client dies.
#include "services/kv/recorder.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

#include "platform/base/error.h"
#include "platform/sim/sim_platform.h"
#include "services/kv/value.h"
#include "services/kv/workload_format.h"
#include "systems/registry/registry.h"
#include "tests/services/kv/conformance/recording.h"

namespace perdura::systems::test {
namespace {

using history::Kind;
using history::Operation;
using history::Outcome;
using kv::OperationLog;

enum class Fault : std::uint8_t { none, stale_read, torn_value, lost_update, ghost_delete };

// Passes everything on, but for one operation on key 1.
class FaultySession final : public kv::KvSession {
 public:
  FaultySession(kv::KvSession& session, Fault fault) : session_(session), fault_(fault) {}

  Task<kv::Result<Bytes>> get(kv::Key key, std::span<std::byte> into) override {
    const auto got = co_await session_.get(key, into);
    if (!got || TestFormat().key_number(key) != 1) co_return got;
    ++gets_;
    if (gets_ == 1) first_.assign(into.begin(), into.begin() + *got);
    if (gets_ == 30 && fault_ == Fault::stale_read) {
      std::copy(first_.begin(), first_.end(), into.begin());
    }
    // The first half is of another version, as while a value is being written.
    if (gets_ == 30 && fault_ == Fault::torn_value) {
      std::copy(first_.begin(), first_.begin() + *got / 2, into.begin());
    }
    co_return got;
  }
  Task<kv::Result<void>> put(kv::Key key, kv::Value value) override {
    if (TestFormat().key_number(key) == 1 && ++puts_ == 30 && fault_ == Fault::lost_update) {
      co_return kv::Result<void>();
    }
    co_return co_await session_.put(key, value);
  }
  Task<kv::Result<void>> erase(kv::Key key) override {
    if (fault_ == Fault::ghost_delete) co_return kv::Result<void>();
    co_return co_await session_.erase(key);
  }
  kv::SessionCounts counts() const override { return session_.counts(); }

 private:
  kv::KvSession& session_;
  Fault fault_;
  int gets_ = 0;
  int puts_ = 0;
  Buffer first_;
};

class RecorderTest : public KvTest {
 protected:
  // Two clients read and write keys 1 and 2, each a key of its own, and read the other's; the first
  // has the fault.
  history::CheckResult run_with(Fault fault) {
    serve();
    for (std::uint64_t c = 0; c < 2; ++c) {
      connect(recording_.of(
          [c, this](kv::KvSession& session, Thread&) -> Task<> {
            Buffer into(4096);
            const Buffer own = key_of(1 + c);
            const Buffer other = key_of(2 - c);
            for (std::uint64_t i = 1; i <= 60; ++i) {
              const Buffer value = value_of(1 + c, i, fit_value(256));
              EXPECT_TRUE((co_await session.put(own, value)).has_value());
              EXPECT_TRUE((co_await session.get(own, into)).has_value());
              (co_await session.get(other, into)).has_value();
              if (i == 50) {
                EXPECT_TRUE((co_await session.erase(own)).has_value());
                (co_await session.get(own, into)).has_value();
              }
            }
          },
          [c, fault](kv::KvSession& session) {
            return std::make_unique<FaultySession>(session, c == 0 ? fault : Fault::none);
          }));
    }
    run();
    return history::check(recording_.history());
  }

  void expect_found(Fault fault, const std::string& what) {
    const auto verdict = run_with(fault);
    ASSERT_EQ(verdict.keys_violated, 1U) << describe(verdict);
    EXPECT_EQ(verdict.violations[0].key, 1U);
    EXPECT_NE(verdict.violations[0].what.find(what), std::string::npos) << describe(verdict);
  }

  Recording recording_;
};

INSTANTIATE_TEST_SUITE_P(All, RecorderTest, testing::ValuesIn(all_subjects()), subject_name);

TEST_P(RecorderTest, RecordsAllThatHappens) {
  const auto verdict = run_with(Fault::none);
  EXPECT_TRUE(verdict.accepted()) << describe(verdict);
  EXPECT_EQ(verdict.operations, 2U * (60 * 3 + 2));
  EXPECT_EQ(verdict.keys, 2U);
  const std::span<const Operation> operations = recording_.log(1).operations();
  EXPECT_EQ(operations[0].kind, Kind::put);
  EXPECT_EQ(operations[0].key, 2U);
  EXPECT_EQ(operations[0].version, 1U);
  EXPECT_EQ(operations[0].client, 1U);
  EXPECT_EQ(operations[0].outcome, Outcome::ok);
  EXPECT_EQ(operations[1].kind, Kind::get);
  EXPECT_EQ(operations[1].version, 1U);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    EXPECT_LE(operations[i].start, operations[i].end);
    if (i > 0) {
      EXPECT_LT(operations[i - 1].end, operations[i].start);
    }
  }
}
TEST_P(RecorderTest, FindsAPlantedStaleRead) {
  expect_found(Fault::stale_read, "a get returned version 1 after the put of version 2");
}
TEST_P(RecorderTest, FindsAPlantedTornValue) {
  expect_found(Fault::torn_value, "a value that nobody wrote (torn)");
}
TEST_P(RecorderTest, FindsAPlantedLostUpdate) {
  expect_found(Fault::lost_update, "a get returned version 29 after the put of version 30");
}
TEST_P(RecorderTest, FindsADeleteThatDidNothing) {
  expect_found(Fault::ghost_delete, "a get returned version 50 after the delete");
}

// --- clients that die

class KilledClient : public testing::TestWithParam<std::string> {};

std::vector<std::string> system_names() {
  std::vector<std::string> names;
  for (const kv::KvSystem& system : kv_systems()) names.emplace_back(system.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, KilledClient, testing::ValuesIn(system_names()),
                         [](const auto& test) {
                           return subject_name({Subject{test.param, "sim"}, test.index});
                         });

TEST_P(KilledClient, LeavesAnUnknownOperationBehind) {
  const kv::KvSystem& system = find_kv_system(GetParam());
  const kv::KvConfig config = fit(system, {.key_size = 16,
                                           .value_size = 200,
                                           .max_value_size = 200,
                                           .records = 50,
                                           .writes = 50'000,
                                           .sessions = 8,
                                           .parameters = {}});
  int under_way = 0;
  for (int kill = 0; kill < 40; ++kill) {
    SCOPED_TRACE(testing::Message() << "kill number " << kill);
    const auto made = perdura::test::make_platform("sim", 3);
    auto& platform = static_cast<perdura::sim::SimPlatform&>(*made);
    OperationLog logs[2];
    bool dead = false;
    platform.start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto partition = system.open(thread, "pool", config);
      co_await partition->serve();
    });
    platform.start_service(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto session = co_await system.connect(thread, {0, 0}, config);
      TestFormat format;
      kv::RecordedSession recorded(*session, 1, format, logs[0]);
      const Buffer key = key_of(7);
      for (std::uint64_t version = 1;; ++version) {
        const Buffer value = value_of(7, version, config.value_size);
        EXPECT_TRUE((co_await recorded.put(key, value)).has_value());
      }
    });
    platform.at(Time(Microseconds(100)) + Nanoseconds(377) * kill, [&] {
      dead = true;
      platform.kill(1);
    });
    platform.start(2, 2, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto session = co_await system.connect(thread, {0, 0}, config);
      TestFormat format;
      kv::RecordedSession recorded(*session, 2, format, logs[1]);
      const Buffer key = key_of(7);
      Buffer into(4096);
      for (int after_death = 0; after_death < 10; after_death += dead ? 1 : 0) {
        (co_await recorded.get(key, into)).has_value();
      }
    });
    platform.run();
    ASSERT_FALSE(logs[0].operations().empty());
    const Operation& last = logs[0].operations().back();
    if (last.outcome == Outcome::unknown) {
      ++under_way;
      EXPECT_EQ(last.end, Time::max());
      EXPECT_EQ(last.version, logs[0].operations().size());
    }
    history::History history;
    for (const OperationLog& log : logs) history.add(log.operations());
    const auto verdict = history::check(history);
    EXPECT_TRUE(verdict.accepted()) << describe(verdict);
  }
  EXPECT_GT(under_way, 30);
}

// --- logs

TEST(OperationLogTest, SurvivesTheProcessThatWritesIt) {
  constexpr std::size_t kCapacity = 4'000'000;
  const std::size_t bytes = OperationLog::bytes_for(kCapacity);
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const std::span memory(static_cast<std::byte*>(mapped), bytes);
  // Each process has a share of its own, however long it is let run.
  for (std::uint32_t process = 0; process < 5; ++process) {
    const std::size_t before = OperationLog::read(memory).size();
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      OperationLog log(memory);
      for (std::uint64_t version = 1; log.operations().size() < kCapacity / 5 * (process + 1);
           ++version) {
        const std::size_t place =
            log.begin({.key = 1, .version = version, .client = process, .kind = Kind::put});
        log.complete(place, version, Time(Picoseconds(5)), Outcome::ok);
      }
      _exit(0);
    }
    while (OperationLog::read(memory).size() < before + 1000) sched_yield();
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const std::vector<Operation> read = OperationLog::read(memory);
    for (std::size_t i = before; i < read.size(); ++i) {
      ASSERT_EQ(read[i].version, i - before + 1);
      ASSERT_EQ(read[i].client, process);
      // All but the one under way have been completed.
      if (i + 1 < read.size()) {
        ASSERT_EQ(read[i].outcome, Outcome::ok);
        ASSERT_EQ(read[i].end, Time(Picoseconds(5)));
      }
    }
  }
  munmap(mapped, bytes);
}

TEST(OperationLogTest, SaysThatItIsFull) {
  std::vector<std::uint64_t> memory(OperationLog::bytes_for(2) / 8);
  OperationLog log(std::as_writable_bytes(std::span(memory)));
  log.begin({.key = 1});
  log.begin({.key = 2});
  EXPECT_THROW(log.begin({.key = 3}), PlatformError);
  EXPECT_EQ(log.operations().size(), 2U);
  // Another log goes on behind what is there.
  EXPECT_THROW(OperationLog(std::as_writable_bytes(std::span(memory))).begin({}), PlatformError);
  EXPECT_THROW(OperationLog(std::span<std::byte>()), PlatformError);
}

// --- what answers mean

// Answers everything with one error, or an exception.
class RefusingSession final : public kv::KvSession {
 public:
  std::optional<kv::Error> error{};
  Task<kv::Result<Bytes>> get(kv::Key, std::span<std::byte>) override {
    if (!error) throw std::runtime_error("the network is gone");
    co_return tl::unexpected(*error);
  }
  Task<kv::Result<void>> put(kv::Key, kv::Value) override {
    if (!error) throw std::runtime_error("the network is gone");
    co_return tl::unexpected(*error);
  }
  Task<kv::Result<void>> erase(kv::Key) override {
    if (!error) throw std::runtime_error("the network is gone");
    co_return tl::unexpected(*error);
  }
  kv::SessionCounts counts() const override { return {.torn_reads = 3, .retries = 4}; }
};

TEST(Recorder, TellsWhatHadNoEffectFromWhatMayHaveHadOne) {
  struct Case {
    std::optional<kv::Error> error;
    Outcome get;
    Outcome put;
    Outcome erase;
  };
  const Case cases[] = {
      {kv::Error::not_found, Outcome::not_found, Outcome::unknown, Outcome::not_found},
      {kv::Error::out_of_space, Outcome::refused, Outcome::refused, Outcome::refused},
      {kv::Error::too_large, Outcome::refused, Outcome::refused, Outcome::refused},
      {kv::Error::corrupt, Outcome::torn, Outcome::unknown, Outcome::unknown},
      {kv::Error::disconnected, Outcome::unknown, Outcome::unknown, Outcome::unknown},
      {std::nullopt, Outcome::unknown, Outcome::unknown, Outcome::unknown},
  };
  for (const Case& expected : cases) {
    OperationLog log;
    const auto platform = perdura::test::make_platform("sim", 1);
    platform->start(0, 0, CompletionMode::polling, [&](Thread&) -> Task<> {
      RefusingSession session;
      session.error = expected.error;
      TestFormat format;
      kv::RecordedSession recorded(session, 0, format, log);
      EXPECT_EQ(recorded.counts().retries, 4U);
      const Buffer key = key_of(1);
      const Buffer value = value_of(1, 1, 16);
      Buffer into(16);
      int thrown = 0;
      try {
        (co_await recorded.get(key, into)).has_value();
      } catch (const std::runtime_error&) {
        ++thrown;
      }
      try {
        (co_await recorded.put(key, value)).has_value();
      } catch (const std::runtime_error&) {
        ++thrown;
      }
      try {
        (co_await recorded.erase(key)).has_value();
      } catch (const std::runtime_error&) {
        ++thrown;
      }
      EXPECT_EQ(thrown, expected.error ? 0 : 3);
    });
    platform->run();
    ASSERT_EQ(log.operations().size(), 3U);
    EXPECT_EQ(log.operations()[0].outcome, expected.get);
    EXPECT_EQ(log.operations()[1].outcome, expected.put);
    EXPECT_EQ(log.operations()[2].outcome, expected.erase);
  }
}

TEST(Recorder, RefusesAValueWithoutAVersion) {
  OperationLog log;
  const auto platform = perdura::test::make_platform("sim", 1);
  platform->start(0, 0, CompletionMode::polling, [&](Thread&) -> Task<> {
    RefusingSession session;
    TestFormat format;
    kv::RecordedSession recorded(session, 0, format, log);
    const Buffer key = key_of(1);
    const Buffer value(64);
    co_await recorded.put(key, value);
  });
  EXPECT_THROW(platform->run(), std::invalid_argument);
  EXPECT_TRUE(log.operations().empty());
}

// --- keys and values of workloads

TEST(WorkloadFormat, ReadsWhatTheWorkloadWrites) {
  for (const std::size_t size : {4U, 8U, 16U, 24U}) {
    const kv::KeyFormat keys(size, "user", kv::InsertOrder::hashed);
    kv::WorkloadFormat format(keys);
    Buffer key(size);
    Buffer other(size);
    keys.write(5, key);
    keys.write(6, other);
    Buffer value(64);
    kv::fill_value(value, 5, 77);
    EXPECT_EQ(format.version(key, value), 77U);
    EXPECT_EQ(format.version(other, value), std::nullopt) << "it is another key's value";
    EXPECT_NE(format.key_number(key), format.key_number(other));
    EXPECT_EQ(format.number_in_workload(format.key_number(other), 2, 100), 6U);
    EXPECT_EQ(format.number_in_workload(format.key_number(other), 7, 100), std::nullopt);
    EXPECT_EQ(format.version(key, std::span(value).first(7)), std::nullopt) << "too short";
    for (const std::size_t least : {8U, 15U}) {
      Buffer small(least);
      kv::fill_value(small, 5, 0xFFFFFFFE);
      EXPECT_EQ(format.version(key, small), 0xFFFFFFFE) << "the greatest of a history";
    }
    value[60] ^= std::byte{1};
    EXPECT_EQ(format.version(key, value), std::nullopt) << "torn";
  }
}

}  // namespace
}  // namespace perdura::systems::test
