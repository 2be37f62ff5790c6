// Every file system does what the specification does: the same random operations on both, with the
// same results, the same trees, and nothing lost when it is mounted again, after it was unmounted
// or after its process died.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "systems/registry/registry.h"
#include "tests/services/fs/random_operations.h"
#include "tests/support/platforms.h"
#include "tests/support/seed.h"

namespace perdura::fs::test {
namespace {

struct Subject {
  std::string platform;
  const FsSystem* system;
  bool is_small;
};

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (const FsSystem& system : systems::fs_systems()) {
    for (const std::string& platform : perdura::test::platform_names()) {
      for (const bool is_small : {false, true}) all.push_back({platform, &system, is_small});
    }
  }
  return all;
}

class FsConformance : public testing::TestWithParam<Subject> {
 protected:
  void run(FsConfig config, const std::function<Task<>(Thread&, Home&)>& body) {
    const FsSystem& system = *GetParam().system;
    // The platform is destroyed first, and its threads with it.
    Home home(system, std::move(config));
    const auto platform = perdura::test::make_platform(GetParam().platform, nodes_for(system, 1));
    home.start(*platform);
    platform->start(home.client(0), kPort, CompletionMode::polling,
                    [&](Thread& thread) { return body(thread, home); });
    platform->run();
  }

  // The events that have not happened; what a failure in the middle of an operation causes is
  // explored elsewhere.
  static std::string missing(const std::vector<std::uint64_t>& happened) {
    std::string names;
    const std::span<const services::Event> events = GetParam().system->events;
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (happened[i] == 0 && !events[i].in_recovery) names += std::string(events[i].name) + "; ";
    }
    return names;
  }

  static constexpr fabric::Port kPort = 0;
};

TEST_P(FsConformance, RandomOperationsDoWhatTheModelDoes) {
  // Some events are rare; there are more seeds until all have happened.
  constexpr std::uint32_t kSeeds = 6;
  constexpr std::uint32_t kMostSeeds = 60;
  const std::uint32_t first = perdura::test::random_seed();
  std::vector<std::uint64_t> events;
  const auto goes_on = [&](std::uint32_t done) {
    if (HasFailure()) return false;
    if (done < kSeeds) return true;
    return GetParam().is_small && done < kMostSeeds && !missing(events).empty();
  };
  for (std::uint32_t done = 0; goes_on(done); ++done) {
    const std::uint32_t seed = first + done;
    SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
    const FsSystem& system = *GetParam().system;
    run(config_of(system, GetParam().is_small), [&](Thread& thread, Home& home) -> Task<> {
      RandomOperations operations(thread, home, seed);
      co_await operations.begin();
      for (int round = 0; round < 30 && !testing::Test::HasFailure(); ++round) {
        for (int i = 0; i < 40 && !testing::Test::HasFailure(); ++i) {
          co_await operations.step();
          co_await yield();
        }
        co_await operations.check();
        if (testing::Test::HasFailure() || round % 3 == 0) continue;
        co_await operations.mount_again(round % 3 == 1);
        co_await operations.check();
      }
      EXPECT_GT(operations.succeeded() * 5, operations.done()) << "most of it has been refused";
      Home::add(operations.events(), events);
      if (!home.has_servers()) co_return;
      const std::vector<std::uint64_t> of_servers = co_await home.events();
      Home::add(of_servers, events);
    });
  }
  if (!GetParam().is_small || HasFailure()) return;
  EXPECT_EQ(missing(events), "") << "there were none";
}

// What statistics() says is free can be had, and there is no more: each write that adds blocks, to
// any of some files, is refused only where so much is not free, and done only where it is. Some
// files lose what they have when all is full, so that what is free is here and there.
class Filling {
 public:
  Filling(std::unique_ptr<Session> session, std::uint32_t seed)
      : session_(std::move(session)), random_(seed) {}

  Task<> begin() {
    for (File& file : files_) {
      file.name = "file " + std::to_string(&file - files_.data());
      const auto made = co_await session_->create(kRootInode, file.name, {.mode = S_IFREG}, {});
      EXPECT_TRUE(made.has_value());
      if (made) file.inode = made->inode;
    }
  }

  Task<> step() {
    constexpr Bytes kMost = 4;
    File& file = files_[random_() % files_.size()];
    const Bytes blocks = 1 + random_() % kMost;
    const std::vector<std::byte> data(blocks * kBlock, std::byte{1});
    const Statistics before = *co_await session_->statistics();
    const auto written = co_await session_->write(file.inode, file.size, data, {});
    if (written) {
      file.size += data.size();
      EXPECT_GE(before.free, data.size()) << "it has more room than it says";
      co_return;
    }
    EXPECT_EQ(written.error(), std::errc::no_space_on_device);
    ++refused_;
    // Each block may lie by itself, and what says where it lies may begin a page of the log.
    EXPECT_LT(before.free, 2 * data.size()) << "it has less room than it says";
    const Statistics after = *co_await session_->statistics();
    EXPECT_EQ(after.free, before.free) << "what is refused keeps room";
    if (blocks > 1) co_return;
    for (int i = 0; i < 2; ++i) {
      File& cut = files_[random_() % files_.size()];
      cut.size = random_() % (cut.size / kBlock + 1) * kBlock;
      const auto done = co_await session_->truncate(cut.inode, cut.size, {});
      EXPECT_TRUE(done.has_value()) << "what frees is refused";
    }
  }

  // Until there is no inode more, or no room for one's name.
  Task<> make_all_inodes() {
    for (int i = 0;; ++i) {
      const Statistics before = *co_await session_->statistics();
      const auto made =
          co_await session_->create(kRootInode, std::to_string(i), {.mode = S_IFREG}, {});
      if (made) {
        EXPECT_GT(before.free_inodes, 0U);
        continue;
      }
      EXPECT_EQ(made.error(), std::errc::no_space_on_device);
      EXPECT_TRUE(before.free_inodes == 0 || before.free < 2 * kBlock)
          << before.free_inodes << " inodes and " << before.free << " bytes should be free";
      co_return;
    }
  }

  int refused() const { return refused_; }

 private:
  struct File {
    std::string name;
    InodeNumber inode{};
    Bytes size = 0;
  };

  std::unique_ptr<Session> session_;
  std::mt19937_64 random_;
  std::array<File, 5> files_;
  int refused_ = 0;
};

TEST_P(FsConformance, HasAsMuchRoomAsItSays) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  FsConfig config = config_of(*GetParam().system, GetParam().is_small);
  config.size = 512 * KiB;
  config.parameters["inodes"] = 32;
  run(config, [&](Thread& thread, Home& home) -> Task<> {
    co_await home.make(thread, {});
    const auto files = co_await home.mount(thread);
    Filling filling(files->attach(thread), seed);
    co_await filling.begin();
    for (int i = 0; i < 600 && !testing::Test::HasFailure(); ++i) co_await filling.step();
    EXPECT_GT(filling.refused(), 10);
    co_await filling.make_all_inodes();
    const std::string audit = co_await files->audit();
    EXPECT_EQ(audit, "");
  });
}

std::string name_of(const testing::TestParamInfo<Subject>& info) {
  std::string name = std::string(info.param.system->info.name) +
                     (info.param.is_small ? "_small_" : "_") + info.param.platform;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, FsConformance, testing::ValuesIn(subjects()), name_of);

}  // namespace
}  // namespace perdura::fs::test
