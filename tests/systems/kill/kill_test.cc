// Real processes on shared memory, killed by SIGKILL at random moments: the client that writes,
// often in the middle of its one-sided write, and the server. What the clients did and were told is
// recorded in memory that survives them, and is linearizable.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <random>

#include "platform/error.h"
#include "platform/shm_platform.h"
#include "tests/systems/kv/recording.h"

namespace perdura::systems::test {
namespace {

constexpr std::uint64_t kKeys = 8;
constexpr Bytes kValue = 4096;

// What the processes tell each other; it outlives each of them.
struct Shared {
  std::array<std::atomic<std::uint64_t>, kKeys> versions{};  // the newest that was begun
  std::atomic<std::uint64_t> writes{0};
  std::atomic<std::uint64_t> reads{0};
  std::atomic<std::uint64_t> unexpected{0};  // errors other than "not found" and "disconnected"
};

// Memory that processes forked from this one share with it.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes)
      : bytes_(static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)),
               bytes) {}
  ~SharedMemory() { munmap(bytes_.data(), bytes_.size()); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

class Cluster {
 public:
  explicit Cluster(std::string system)
      : system_(std::move(system)),
        job_("kv-kill-" + system_ + "-" + std::to_string(getpid())),
        pool_directory_("/dev/shm/perdura-pools-" + job_),
        shared_(new (memory_.bytes().data()) Shared) {
    std::filesystem::create_directories(pool_directory_);
  }
  ~Cluster() {
    while (!processes_.empty()) kill_process(processes_.back());
    std::filesystem::remove_all(pool_directory_);
  }

  Shared& shared() { return *shared_; }
  // Of the writers and of the reader.
  history::History history() const {
    history::History all(history::OperationLog::read(written_.bytes()));
    all.add(history::OperationLog::read(read_.bytes()));
    return all;
  }

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
    TestFormat format;
    history::OperationLog log(cluster.written_.bytes());
    for (;;) {
      const auto connection = co_await connect(thread, cluster);
      history::RecordedSession session(*connection, 1, format, log);
      for (std::uint64_t i = 0;; ++i) {
        const std::uint64_t version = ++shared.versions[i % kKeys];
        const Buffer name = key_of(i % kKeys);
        const Buffer value = value_of(i % kKeys, version, kValue);
        const auto put = co_await session.put(name, value);
        if (put) {
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
    TestFormat format;
    history::OperationLog log(cluster.read_.bytes());
    for (;;) {
      const auto connection = co_await connect(thread, cluster);
      history::RecordedSession session(*connection, 2, format, log);
      for (;;) {
        const std::uint64_t number = random() % kKeys;
        const Buffer name = key_of(number);
        const auto got = co_await session.get(name, into);
        if (!got && got.error() == Error::disconnected) break;
        if (!got && got.error() != Error::not_found) ++shared.unexpected;
        ++shared.reads;
      }
    }
  }

  std::string system_;
  std::string job_;
  std::string pool_directory_;
  SharedMemory memory_{sizeof(Shared)};
  SharedMemory written_{history::OperationLog::bytes_for(1'000'000)};
  SharedMemory read_{history::OperationLog::bytes_for(50'000'000)};
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

void expect_linearizable(const history::History& history) {
  const auto verdict = history::check(history);
  EXPECT_TRUE(verdict.accepted()) << describe(verdict);
}

TEST_P(Kill, TheWriterAgainAndAgain) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  Cluster cluster(GetParam());
  cluster.start_server();
  cluster.start_reader();
  for (int i = 0; i < 30; ++i) {
    const pid_t writer = cluster.start_writer();
    ASSERT_TRUE(cluster.progress(100 + random() % 500, 50)) << "after kill " << i;
    cluster.kill_process(writer);
  }
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
  EXPECT_EQ(cluster.shared().unexpected, 0U);
  expect_linearizable(cluster.history());
}

}  // namespace
}  // namespace perdura::systems::test
