// The server of a hash index is killed at a random moment in one resize after the other, while
// clients of all its workers insert, update and delete until it is full. Everything that was
// acknowledged is there afterwards, and nothing else.
#include <atomic>
#include <chrono>
#include <random>

#include "systems/registry/registry.h"
#include "tests/support/wait_until.h"
#include "tests/systems/bucket_hash/workers.h"
#include "tests/systems/kill/kv_processes.h"

namespace perdura::systems::test {
namespace {

using perdura::test::wait_until;
using Clock = std::chrono::steady_clock;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kKillsInResizes = 4;
#else
constexpr int kKillsInResizes = 15;
#endif
constexpr Bytes kResizeValue = 15;
constexpr NodeId kClientNodes = 2;

struct SharedInResizes {
  std::atomic<bool> resizing{false};
  std::atomic<std::uint64_t> writes{0};
  std::atomic<std::uint32_t> ended{0};  // writers, when the store is full and holds what it should
  std::atomic<std::uint64_t> wrong{0};
};

// A writer, one for each worker of the server: the only one who writes its keys, so it knows what
// they must be.
class Writer {
 public:
  Writer(const KvProcesses& processes, std::uint32_t number, std::uint32_t writers,
         SharedInResizes& shared)
      : processes_(processes), number_(number), writers_(writers), shared_(shared) {}

  Task<> run(Thread& thread) {
    bool full = false;
    while (!full) {
      co_await connect(thread);
      for (bool connected = true; connected && !full;) {
        const kv::Result<void> written = co_await write();
        connected = written || written.error() != kv::Error::disconnected;
        full = !written && written.error() == kv::Error::out_of_space;
        if (!connected) continue;
        if (!written && !full) ++shared_.wrong;
        if (written) versions_[doubtful_] = next_;
        next_ = versions_[doubtful_];
        ++shared_.writes;
      }
    }
    for (std::uint64_t key = 0; key < versions_.size();) {
      if (co_await look(key)) {
        ++key;
      } else {
        co_await connect(thread);
      }
    }
    ++shared_.ended;
  }

 private:
  Task<> connect(Thread& thread) {
    for (bool looked = false; !looked;) {
      session_ = co_await processes_.connect(thread, static_cast<fabric::Port>(number_));
      looked = co_await look(doubtful_);
    }
  }

  // Inserts; now and then updates or deletes a key from before instead.
  Task<kv::Result<void>> write() {
    const bool old = !versions_.empty() && random_() % 4 == 0;
    doubtful_ = old ? random_() % versions_.size() : versions_.size();
    if (!old) versions_.push_back(0);
    const Buffer name = key_of(doubtful_ * writers_ + number_);
    next_ = old && versions_[doubtful_] != 0 && random_() % 3 == 0 ? 0 : ++newest_;
    if (next_ == 0) co_return co_await session_->erase(name);
    const Buffer value = value_of(doubtful_, next_, kResizeValue);
    co_return co_await session_->put(name, value);
  }

  // False if the connection broke. A write that was under way may have taken effect or not, but
  // after this it has or has not.
  Task<bool> look(std::uint64_t key) {
    if (key >= versions_.size()) co_return true;
    const Buffer name = key_of(key * writers_ + number_);
    Buffer into(kResizeValue);
    const auto got = co_await session_->get(name, into);
    if (!got && got.error() == kv::Error::disconnected) co_return false;
    const std::uint64_t found =
        got ? version_of(key, std::span(into).first(*got)).value_or(~std::uint64_t{0}) : 0;
    const bool right = found == versions_[key] || (key == doubtful_ && found == next_);
    if (!right) ++shared_.wrong;
    versions_[key] = found;
    co_return true;
  }

  const KvProcesses& processes_;
  std::uint32_t number_;
  std::uint32_t writers_;
  SharedInResizes& shared_;
  std::unique_ptr<kv::KvSession> session_;
  std::mt19937_64 random_{number_};
  std::vector<std::uint64_t> versions_;  // by key; 0 is absent
  std::uint64_t newest_ = 0;
  std::uint64_t doubtful_ = 0;  // the key that was written last
  std::uint64_t next_ = 0;      // what it was to become
};

struct Killed {
  std::string system;
  std::uint32_t workers = 1;
};

class KillInResize : public testing::TestWithParam<Killed> {
 protected:
  // One store, from empty to full.
  void fill(std::mt19937& random, int& kills);
  // The server is killed so long at most after its resize was seen. It gets about as long as
  // resizes take, however fast this machine is just now.
  Clock::duration window_ = std::chrono::milliseconds(1);
};

std::vector<Killed> killed() {
  std::vector<Killed> all;
  for (const kv::KvSystem& system : kv_systems()) {
    if (!system.shares_partition) continue;
    for (const std::uint32_t workers : {1U, 2U, 4U})
      all.push_back({std::string(system.name), workers});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, KillInResize, testing::ValuesIn(killed()),
                         [](const testing::TestParamInfo<Killed>& subject) {
                           return test_name(subject.param.system, subject.param.workers);
                         });

void KillInResize::fill(std::mt19937& random, int& kills) {
  SharedMemory memory(sizeof(SharedInResizes));
  SharedInResizes& shared = *new (memory.bytes().data()) SharedInResizes;
  const std::uint32_t workers = GetParam().workers;
  KvProcesses processes(GetParam().system,
                        resizing_config(find_kv_system(GetParam().system), workers, 9));
  const auto start_server = [&] {
    return processes.start_workers([&shared](const kv::KvPartition& partition) -> Task<> {
      for (;;) {
        shared.resizing = partition.space().resizing;
        co_await yield();
      }
    });
  };
  pid_t server = start_server();
  for (NodeId node = 0; node < kClientNodes; ++node) {
    std::vector<KvProcesses::Body> writers;
    for (std::uint32_t number = node; number < workers; number += kClientNodes) {
      writers.push_back([&, number](Thread& thread) -> Task<> {
        Writer writer(processes, number, workers, shared);
        co_await writer.run(thread);
        WaitList forever;
        co_await wait(forever);
      });
    }
    if (!writers.empty()) processes.start_threads(1 + node, writers);
  }
  for (;;) {
    ASSERT_TRUE(wait_until([&] { return shared.resizing || shared.ended == workers; }));
    if (!shared.resizing) break;
    const auto moment = Clock::now() + window_ * (random() % 1000) / 1000;
    while (shared.resizing && Clock::now() < moment) {
    }
    if (!shared.resizing) {
      window_ /= 2;
      continue;
    }
    window_ = window_ * 5 / 4 + std::chrono::microseconds(1);
    processes.kill_process(server);
    ++kills;
    shared.resizing = false;
    server = start_server();
  }
  EXPECT_EQ(shared.wrong, 0U);
  EXPECT_GT(shared.writes, 1000U);
}

TEST_P(KillInResize, LosesNothing) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  int rounds = 0;
  for (int kills = 0; kills < kKillsInResizes; ++rounds) {
    fill(random, kills);
    if (testing::Test::HasFailure()) return;
  }
  std::cout << kKillsInResizes << " kills or more in " << rounds << " stores\n";
}

}  // namespace
}  // namespace perdura::systems::test
