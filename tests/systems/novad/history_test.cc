// Histories of two clients and a local program that use the same files at once, judged by the
// specification of file systems. In place, writes are not atomic and change no times; but each
// aligned word is that of some order of all operations, if a write is settled before it returns.
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <random>

#include <fmt/format.h>

#include "services/fs/crash/operation.h"
#include "services/fs/crash/specification.h"
#include "services/linearizability.h"
#include "tests/support/seed.h"
#include "tests/systems/novad/support.h"

namespace perdura::systems::novad::test {
namespace {

using fs::Operation;
using Kind = fs::Operation::Kind;

constexpr int kOperations = 50;  // each participant calls so many
constexpr int kHistories = 20;
constexpr std::size_t kFiles = 2;
constexpr Bytes kWord = 8;
constexpr Bytes kAtFirst = 3 * fs::kBlock + 1000;

struct HistoryCase {
  std::string platform;
  bool in_place;
};

class Recorder {
 public:
  // Calls the session, and notes what it was told.
  Task<fs::Answer> call(Thread& thread, fs::Session& session, Operation operation) {
    operation.content = ++number_;
    operation.now = {static_cast<std::int64_t>(1000 + operation.content), 0};
    // On the model a thread that has run without a pause is ahead of the others.
    co_await yield();
    const Time begin = thread.executor.now();
    operation.answer = co_await fs::perform(session, operation);
    co_await yield();
    const std::lock_guard guard(lock_);
    calls_.push_back({operation, begin, thread.executor.now(), true});
    co_return operation.answer;
  }

  void judge(const fs::FsConfig& config) const {
    const fs::Model empty({.root_mode = config.root_mode, .now = config.now});
    const fs::Specification specification(fs::ModelState(empty, {{fs::kRoot, fs::kRootInode}}));
    const services::Linearizability verdict =
        services::check_linearizability(specification, calls_);
    EXPECT_EQ(verdict.decision, services::Linearizability::Decision::linearizable)
        << specification.text(calls_.at(verdict.refused));
  }

 private:
  std::atomic<std::uint64_t> number_{0};
  std::mutex lock_;
  std::vector<services::Call<Operation>> calls_;
};

class NovadHistory : public testing::TestWithParam<HistoryCase> {
 protected:
  static bool in_place() { return GetParam().in_place; }

  static Operation draw(std::mt19937& random, fs::InodeId file) {
    Operation operation{.inode = file};
    const auto offset = [&] { return random() % kAtFirst / kWord * kWord; };
    // Holes, which longer files get, keep clients from READs, so few operations cut files.
    switch (random() % 20) {
      case 0:
        operation.kind = Kind::truncate;
        operation.offset = offset();
        break;
      case 1:
      case 2:
        operation.kind = Kind::append;
        operation.length = in_place() ? kWord : 1 + random() % 5000;
        break;
      case 3:
      case 4:
        // The times are not those of the model if WRITEs have changed the file.
        operation.kind = in_place() ? Kind::sync : Kind::attributes;
        break;
      case 5:
      case 6:
      case 7:
      case 8:
      case 9:
      case 10:
        operation.kind = Kind::write;
        operation.offset = offset();
        operation.length = in_place() ? kWord : 1 + random() % 9000;
        break;
      default:
        operation.kind = Kind::read;
        operation.offset = offset();
        operation.length = in_place() ? kWord : 1 + random() % 9000;
        break;
    }
    return operation;
  }

  // One participant holds the files, and calls operations on them.
  static Task<> take_part(Thread& thread, fs::Session& session, Recorder& recorder,
                          const std::vector<fs::InodeId>& files, std::uint32_t seed) {
    std::mt19937 random(seed);
    for (const fs::InodeId file : files) {
      EXPECT_TRUE((co_await session.hold(file.number)).has_value());
    }
    for (int i = 0; i < kOperations && !HasFailure(); ++i) {
      co_await recorder.call(thread, session, draw(random, files[random() % kFiles]));
    }
  }

  static Task<std::vector<fs::InodeId>> make_files(Thread& thread, fs::Session& session,
                                                   Recorder& recorder) {
    std::vector<fs::InodeId> files;
    for (std::size_t i = 0; i < kFiles; ++i) {
      Operation create{.kind = Kind::create, .name = std::to_string(i), .mode = S_IFREG | 0644};
      const fs::Answer made = co_await recorder.call(thread, session, std::move(create));
      EXPECT_FALSE(made.inodes.empty());
      if (made.inodes.empty()) co_return files;
      files.push_back(made.inodes.front());
      Operation write{.kind = Kind::write, .inode = files.back(), .length = kAtFirst};
      co_await recorder.call(thread, session, std::move(write));
    }
    co_return files;
  }
};

TEST_P(NovadHistory, IsThatOfAFileSystem) {
  const std::uint32_t first = perdura::test::random_seed();
  double reads = 0;
  double writes = 0;
  for (std::uint32_t seed = first; seed < first + kHistories && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("PERDURA_TEST_SEED={}", seed));
    const fs::FsConfig config{
        .size = 4 * MiB,
        .threads = 8,
        .parameters = {{"writes", std::string(in_place() ? "in-place" : "atomic")}}};
    const auto platform = perdura::test::make_platform(GetParam().platform, nodes_for(kNovad, 2));
    Home home(kNovad, config);
    home.start(*platform);
    const auto barrier = platform->create_barrier(3);
    Recorder recorder;
    std::vector<fs::InodeId> files;
    std::mutex counted;
    for (std::uint32_t number = 0; number < 3; ++number) {
      const bool is_local = number == 2;
      platform->start(is_local ? kServer : home.client(static_cast<NodeId>(number)), 1,
                      CompletionMode::polling, [&, number, is_local](Thread& thread) -> Task<> {
                        if (number == 0) co_await home.make(thread, {});
                        co_await barrier->arrive_and_wait();
                        const auto mounted = co_await home.mount(thread);
                        const auto session = mounted->attach(thread);
                        // A WRITE of a mount with several sessions is settled at once.
                        const auto other = mounted->attach(thread);
                        if (number == 0) files = co_await make_files(thread, *session, recorder);
                        co_await barrier->arrive_and_wait();
                        co_await take_part(thread, *session, recorder, files, seed * 3 + number);
                        co_await barrier->arrive_and_wait();
                        if (!is_local) {
                          const std::lock_guard guard(counted);
                          reads += SessionCounts(*session).reads;
                          writes += SessionCounts(*session).writes;
                        }
                        if (number > 0) co_return;
                        EXPECT_EQ(co_await home.audit(), "");
                      });
    }
    platform->run();
    recorder.judge(config);
  }
  EXPECT_GT(reads, 5 * kHistories) << "all has been done by requests";
  if (!in_place()) return;
  EXPECT_GT(writes, 5 * kHistories);
}

std::vector<HistoryCase> history_cases() {
  std::vector<HistoryCase> cases;
  for (const std::string& platform : perdura::test::platform_names()) {
    for (const bool in_place : {false, true}) cases.push_back({platform, in_place});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, NovadHistory, testing::ValuesIn(history_cases()),
                         [](const auto& one) {
                           return one.param.platform +
                                  (one.param.in_place ? "_in_place" : "_atomic");
                         });

}  // namespace
}  // namespace perdura::systems::novad::test
