// Real processes on shared memory, killed by SIGKILL at random moments: the client that writes,
// often in the middle of its one-sided write, and the server. No get ever returns a torn or
// invented value, or one older than what had been acknowledged before it began.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <random>

#include "platform/error.h"
#include "platform/shm_platform.h"
#include "tests/systems/kv/support.h"

namespace perdura::systems::test {
namespace {

constexpr std::uint64_t kKeys = 8;
constexpr Bytes kValue = 4096;

// What the processes tell each other; it outlives each of them.
struct Shared {
  struct Key {
    std::atomic<std::uint64_t> started{0};
    std::atomic<std::uint64_t> acknowledged{0};
  };
  std::array<Key, kKeys> keys;
  std::atomic<std::uint64_t> writes{0};
  std::atomic<std::uint64_t> reads{0};
  std::atomic<std::uint64_t> torn{0};        // neither old nor new
  std::atomic<std::uint64_t> stale{0};       // older than acknowledged before
  std::atomic<std::uint64_t> invented{0};    // never begun
  std::atomic<std::uint64_t> unexpected{0};  // any other error
};

class Cluster {
 public:
  explicit Cluster(std::string system)
      : system_(std::move(system)),
        job_("kv-kill-" + system_ + "-" + std::to_string(getpid())),
        pool_directory_("/dev/shm/perdura-pools-" + job_),
        shared_(new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared) {
    std::filesystem::create_directories(pool_directory_);
  }
  ~Cluster() {
    while (!processes_.empty()) kill_process(processes_.back());
    munmap(shared_, sizeof(Shared));
    std::filesystem::remove_all(pool_directory_);
  }

  Shared& shared() { return *shared_; }

  pid_t start_server() {
    return start(0, [this](Thread& thread) -> Task<> {
      const auto partition = find_kv_system(system_).open(thread, "pool", config());
      co_await partition->serve();
    });
  }
  pid_t start_writer() {
    return start(1, [this](Thread& thread) -> Task<> { return write(thread, *this); });
  }
  pid_t start_reader() {
    return start(2, [this](Thread& thread) -> Task<> { return read(thread, *this); });
  }
  void kill_process(pid_t process) {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
    std::erase(processes_, process);
  }

  // Waits until the writer and the reader have got on by so many operations; false if they do not.
  bool progress(std::uint64_t writes, std::uint64_t reads) {
    const std::uint64_t write_goal = shared_->writes + writes;
    const std::uint64_t read_goal = shared_->reads + reads;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (shared_->writes < write_goal || shared_->reads < read_goal) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      sched_yield();
    }
    return true;
  }

 private:
  static KvConfig config() {
    return {.key_size = 16,
            .value_size = kValue,
            .max_value_size = kValue,
            .records = 100,
            .writes = 150'000,
            .sessions = 256,
            .parameters = {}};
  }

  pid_t start(NodeId node, std::function<Task<>(Thread&)> body) {
    const pid_t process = fork();
    if (process != 0) {
      processes_.push_back(process);
      return process;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int status = 1;
    try {
      ShmOptions options;
      options.job = job_;
      options.node_count = 3;
      options.local_nodes = {node};
      options.pm_directory = pool_directory_;
      ShmPlatform platform(std::move(options));
      platform.start(node, 0, CompletionMode::polling, body);
      platform.run();
      status = 0;
    } catch (const std::exception& error) {
      fprintf(stderr, "node %u: %s\n", node, error.what());
    }
    _exit(status);
  }

  // A session, as soon as the server is there.
  static Task<std::unique_ptr<KvSession>> connect(Thread& thread, Cluster& cluster) {
    for (;;) {
      bool failed = false;
      std::unique_ptr<KvSession> session;
      try {
        session = co_await find_kv_system(cluster.system_).connect(thread, {0, 0}, config());
      } catch (const PlatformError&) {
        failed = true;
      }
      if (!failed) co_return session;
      co_await yield();
    }
  }

  static Task<> write(Thread& thread, Cluster& cluster) {
    Shared& shared = *cluster.shared_;
    for (;;) {
      const auto session = co_await connect(thread, cluster);
      for (std::uint64_t i = 0;; ++i) {
        Shared::Key& key = shared.keys[i % kKeys];
        const std::uint64_t version = ++key.started;
        const Buffer name = key_of(i % kKeys);
        const Buffer value = value_of(i % kKeys, version, kValue);
        const auto put = co_await session->put(name, value);
        if (put) {
          key.acknowledged = version;
          ++shared.writes;
        } else {
          if (put.error() != Error::disconnected) ++shared.unexpected;
          break;
        }
      }
    }
  }

  static Task<> read(Thread& thread, Cluster& cluster) {
    Shared& shared = *cluster.shared_;
    Buffer into(kValue);
    std::mt19937_64 random(1);
    for (;;) {
      const auto session = co_await connect(thread, cluster);
      for (;;) {
        const std::uint64_t number = random() % kKeys;
        Shared::Key& key = shared.keys[number];
        const std::uint64_t floor = key.acknowledged;
        const Buffer name = key_of(number);
        const auto got = co_await session->get(name, into);
        if (!got && got.error() == Error::disconnected) break;
        ++shared.reads;
        if (!got) {
          if (got.error() != Error::not_found) {
            ++shared.unexpected;
          } else if (floor > 0) {
            ++shared.stale;
          }
          continue;
        }
        const auto version = version_of(number, std::span(into).first(*got));
        if (!version) {
          ++shared.torn;
        } else if (*version < floor) {
          ++shared.stale;
        } else if (*version > key.started) {
          ++shared.invented;
        }
      }
    }
  }

  std::string system_;
  std::string job_;
  std::string pool_directory_;
  Shared* shared_;
  std::vector<pid_t> processes_;
};

class Kill : public testing::TestWithParam<std::string> {};

std::vector<std::string> system_names() {
  std::vector<std::string> names;
  for (const KvSystem& system : kv_systems()) names.emplace_back(system.name);
  return names;
}
std::string plain_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, Kill, testing::ValuesIn(system_names()), plain_name);

void expect_sound(Shared& shared) {
  EXPECT_EQ(shared.torn, 0U);
  EXPECT_EQ(shared.stale, 0U);
  EXPECT_EQ(shared.invented, 0U);
  EXPECT_EQ(shared.unexpected, 0U);
}

TEST_P(Kill, TheWriterAgainAndAgain) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  Cluster cluster(GetParam());
  cluster.start_server();
  cluster.start_reader();
  int cut_off = 0;
  for (int i = 0; i < 30; ++i) {
    const pid_t writer = cluster.start_writer();
    ASSERT_TRUE(cluster.progress(100 + random() % 500, 50)) << "after kill " << i;
    cluster.kill_process(writer);
    for (Shared::Key& key : cluster.shared().keys)
      cut_off += key.started != key.acknowledged ? 1 : 0;
  }
  ASSERT_TRUE(cluster.progress(0, 1000)) << "the reader must go on";
  expect_sound(cluster.shared());
  EXPECT_GT(cut_off, 10) << "the writer should have been in the middle of a put";
}

TEST_P(Kill, TheServerAgainAndAgain) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  Cluster cluster(GetParam());
  cluster.start_reader();
  cluster.start_writer();
  for (int i = 0; i < 20; ++i) {
    const pid_t server = cluster.start_server();
    ASSERT_TRUE(cluster.progress(100 + random() % 500, 50)) << "after kill " << i;
    cluster.kill_process(server);
  }
  cluster.start_server();
  ASSERT_TRUE(cluster.progress(100, 1000));
  expect_sound(cluster.shared());
}

}  // namespace
}  // namespace perdura::systems::test
