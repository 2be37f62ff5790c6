// A file system in replicated memory: when an operation has returned, a copy holds all of it.
#include "bench/fs/replication.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "bench/fs/target.h"
#include "platform/base/random.h"
#include "platform/runtime/sync.h"
#include "services/fs/tree.h"
#include "systems/registry/registry.h"
#include "tests/support/platforms.h"
#include "tests/support/seed.h"

namespace perdura::bench {
namespace {

constexpr Bytes kSize = 1 * MiB;

class Copying {
 public:
  Copying(const fs::FsSystem& system, const char* memory)
      : system_(system), replication_(systems::find_memory_system(memory), config(), 1) {
    opened_ = platform_->create_barrier(2);
    platform_->start_service(1, 0, CompletionMode::polling,
                             [this](Thread& thread) { return serve(thread); });
    platform_->start(0, 0, CompletionMode::polling, [this](Thread& thread) { return use(thread); });
    platform_->run();
  }

 private:
  static services::MemoryConfig config() {
    services::MemoryConfig config;
    config.size = kSize;
    return config;
  }

  Task<> serve(Thread& thread) {
    replication_.open(thread);
    thread.executor.spawn(replication_.serve(thread));
    co_await opened_->arrive_and_wait();
    WaitList forever;
    co_await wait(forever);
  }

  Task<> use(Thread& thread) {
    replication_.open(thread);
    co_await opened_->arrive_and_wait();
    Thread* const mapped = co_await replication_.map(thread, 0);
    const fs::FsConfig config{.size = kSize, .threads = 2};
    co_await system_.make(*mapped, "fs", config);
    auto files = co_await system_.mount(*mapped, "fs", config);
    const auto begun = co_await replication_.sync(0);
    EXPECT_TRUE(begun);
    auto reader = files->attach(*mapped);
    auto target = create_replicated_target(files->attach(*mapped), replication_, 0);
    for (int step = 0; step < 200; ++step) {
      co_await operate(*target);
      if (step % 10 == 0) co_await compare(thread, *reader, step);
    }
    target.reset();
    reader.reset();
    co_await files->unmount();
    files.reset();
    const auto synced = co_await replication_.sync(0);
    EXPECT_TRUE(synced);
    co_await replication_.settle(0);
    replication_.unmap(0);
  }

  std::string some_name() { return fmt::format("{}", random_.uniform_below(6)); }

  // Some operation on some names, which may fail.
  Task<> operate(FileTarget& target) {
    const std::string name = some_name();
    const std::string other = some_name();
    const std::vector<std::byte> data(1 + random_.uniform_below(9000),
                                      static_cast<std::byte>(random_() & 0xff));
    switch (random_.uniform_below(6)) {
      case 0: {
        const auto file = co_await target.create(name);
        if (file) co_await close(target, *file);
        break;
      }
      case 1:
      case 2: {
        const auto file = co_await target.open(name);
        if (!file) break;
        const Bytes offset = random_.uniform_below(9000);
        const auto written = co_await target.write(*file, offset, data);
        const auto appended = co_await target.append(*file, data);
        changes_ += (written ? 1 : 0) + (appended ? 1 : 0);
        co_await close(target, *file);
        break;
      }
      case 3: {
        const auto done = co_await target.rename(name, other);
        changes_ += done ? 1 : 0;
        break;
      }
      case 4: {
        const auto done = co_await target.unlink(name);
        changes_ += done ? 1 : 0;
        break;
      }
      case 5: {
        const auto made = co_await target.make_directory(name);
        const auto removed = co_await target.remove_directory(other);
        changes_ += (made ? 1 : 0) + (removed ? 1 : 0);
        break;
      }
    }
  }
  static Task<> close(FileTarget& target, FileTarget::Handle file) {
    const auto closed = co_await target.close(file);
    EXPECT_TRUE(closed);
  }

  // What the mirror holds, recovered as after a failure, is the same file system.
  Task<> compare(Thread& thread, fs::Session& reader, int step) {
    co_await replication_.settle(0);
    while (!replication_.has_all(1)) co_await sleep_for(Microseconds(1));
    std::vector<std::byte> held(kSize);
    replication_.replica(1).read(0, held);
    const std::string name = fmt::format("copy-{}", step);
    thread.node.create_region(name, kSize, pmem::Medium::pm)->write(0, held);
    const fs::FsConfig config{.size = kSize};
    auto copy = co_await system_.mount(thread, name, config);
    auto session = copy->attach(thread);
    const fs::Tree expected = co_await fs::read_tree(reader);
    const fs::Tree found = co_await fs::read_tree(*session);
    EXPECT_EQ(fs::difference(expected, found), "") << "after step " << step;
    EXPECT_TRUE(found.problems.empty());
    const std::string contradiction = co_await copy->audit();
    EXPECT_EQ(contradiction, "");
    session.reset();
    co_await copy->unmount();
  }

 public:
  std::uint64_t changes() const { return changes_; }

 private:
  std::uint32_t seed_ = perdura::test::random_seed();
  testing::ScopedTrace trace_{__FILE__, __LINE__, seed_};
  Random random_{seed_};
  std::unique_ptr<Platform> platform_ = perdura::test::make_platform("sim", 2);
  const fs::FsSystem& system_;
  Replication replication_;
  std::unique_ptr<Platform::Barrier> opened_;
  std::uint64_t changes_ = 0;
};

TEST(Replication, TheMirrorHasEachOperationThatHasReturned) {
  for (const fs::FsSystem& system : systems::fs_systems()) {
    if (system.cluster != nullptr) continue;  // it keeps its copies itself
    for (const char* const memory : {"m-sync", "m-async"}) {
      SCOPED_TRACE(fmt::format("{} in {}", system.info.name, memory));
      EXPECT_GT(Copying(system, memory).changes(), 20U);
    }
  }
}

}  // namespace
}  // namespace perdura::bench
