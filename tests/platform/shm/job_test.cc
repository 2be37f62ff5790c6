// The job directory: who may join, what is left behind and removed, how failures spread.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "platform/base/error.h"
#include "platform/fabric/shm/segment.h"
#include "tests/platform/shm/process.h"
#include "tests/support/leftovers.h"

namespace perdura::shm_test {

using pmem::Medium;

TEST(ShmJob, ANodeRunsOnceAndInAClusterOfOneSize) {
  const TemporaryJob temporary;
  const std::string& job = temporary.name();
  const ShmPlatform first(node_of(job, 0));
  EXPECT_THROW(ShmPlatform(node_of(job, 0)), UsageError);
  EXPECT_THROW(ShmPlatform(node_of(job, 1, 3)), UsageError);
  EXPECT_THROW(ShmPlatform(node_of(job, 2)), UsageError);
  const ShmPlatform second(node_of(job, 1));
}

TEST(ShmJob, NodesThatComeAndGoDoNotWaitForEachOther) {
  const TemporaryJob temporary;
  ShmOptions options = node_of(temporary.name(), 0);
  options.meets = false;
  bool has_run = false;
  for (int life = 0; life < 2; ++life) {
    ShmPlatform platform(options);
    platform.start(0, 0, CompletionMode::event, [&](Thread&) -> Task<> {
      has_run = true;
      co_return;
    });
    platform.run();
    EXPECT_TRUE(std::exchange(has_run, false));
    EXPECT_THROW(platform.create_barrier(1), UsageError);
  }
}

TEST(ShmJob, AnExceptionElsewhereEndsTheWaitAtABarrier) {
  const TemporaryJob temporary;
  const std::string& job = temporary.name();
  Process waiting([&](const Process::Voice& voice) {
    ShmPlatform platform(node_of(job, 0));
    const auto barrier = platform.create_barrier(2);
    platform.start(0, 1, CompletionMode::event, [&](Thread&) -> Task<> {
      voice.say('w');
      co_await barrier->arrive_and_wait();
    });
    EXPECT_THROW(platform.run(), PlatformError);
  });
  ASSERT_TRUE(waiting.hears('w'));
  Process failing([&](const Process::Voice&) {
    ShmPlatform platform(node_of(job, 1));
    const auto barrier = platform.create_barrier(2);
    platform.start(1, 1, CompletionMode::event, [](Thread&) -> Task<> {
      co_await yield();
      throw std::runtime_error("on purpose");
    });
    EXPECT_THROW(platform.run(), std::runtime_error);
  });
  EXPECT_EQ(failing.exit_code(), 0);
  EXPECT_EQ(waiting.exit_code(), 0);
}

// Peers of a dead process may still hold connections to it, and use them before they learn of its
// death. Who takes its place breaks them first, and waits for the operation that a living peer is
// in the middle of; not for one that a dead peer was in the middle of, though that peer's node
// lives again.
//
// Generations count the nodes that joined the job: the bystander, node 2, is the first, then come
// the two of the victim.
using fabric::shm::life_of;
struct Change {
  const char* name;
  std::uint64_t by;  // the life that is in the middle of an operation; 0: none
  bool lives_again = false;
  bool waits = false;
};
class AnotherLife : public testing::TestWithParam<Change> {};
INSTANTIATE_TEST_SUITE_P(
    ShmJob, AnotherLife,
    testing::Values(Change{.name = "nothing", .by = 0},
                    Change{.name = "of_a_living_peer", .by = life_of(1, 2), .waits = true},
                    Change{.name = "of_a_dead_peer", .by = life_of(3, 1)},
                    Change{.name = "of_a_dead_peer_that_lives_again",
                           .by = life_of(3, 1),
                           .lives_again = true}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST_P(AnotherLife, BreaksTheConnectionsOfTheLast) {
  const TemporaryJob temporary;
  const std::string& job = temporary.name();
  const ShmPlatform bystander(node_of(job, 2, 3));  // the job goes on meanwhile
  std::shared_ptr<fabric::shm::PeerSegment> segment;
  {
    Process victim([&](const Process::Voice& voice) {
      ShmOptions options = node_of(job, 0, 3);
      options.local_nodes = {0, 1};
      ShmPlatform platform(options);
      platform.start(0, 1, CompletionMode::event, [&](Thread& thread) -> Task<> {
        const auto peer = (co_await thread.endpoint.next_connection())->accept({}, {});
        voice.say('k');
        co_await sleep_for(std::chrono::hours(1));
      });
      platform.start(1, 1, CompletionMode::event, [](Thread& thread) -> Task<> {
        const auto connection = co_await thread.endpoint.connect({0, 1}, {}, {});
        co_await sleep_for(std::chrono::hours(1));
      });
      platform.run();
    });
    ASSERT_TRUE(victim.hears('k'));
    segment = fabric::shm::PeerSegment::open(directory_of(job) + "/node-0.port-1", 2);
    ASSERT_NE(segment, nullptr);
    victim.kill();
  }
  auto& slot = segment->shared().connections[0];
  EXPECT_EQ(slot.state, fabric::shm::SlotState::open);
  slot.changing = GetParam().by;
  std::unique_ptr<ShmPlatform> again;
  if (GetParam().lives_again) again = std::make_unique<ShmPlatform>(node_of(job, 1, 3));
  if (GetParam().waits) {
    ShmOptions impatient = node_of(job, 0, 3);
    impatient.join_timeout = Milliseconds(1);
    EXPECT_THROW(ShmPlatform{impatient}, PlatformError);
  }
  std::atomic<bool> joined{false};
  std::thread successor([&] {
    const ShmPlatform platform(node_of(job, 0, 3));
    joined = true;
  });
  if (GetParam().waits) {
    while (slot.state != fabric::shm::SlotState::closed) std::this_thread::yield();
    for (int glance = 0; glance < 2000; ++glance) {
      EXPECT_FALSE(joined);
      std::this_thread::yield();
    }
    slot.changing = 0;
  }
  successor.join();
  EXPECT_TRUE(joined);
  EXPECT_EQ(slot.state, fabric::shm::SlotState::closed);
}

// Killed between any two instructions of joining.
TEST(ShmJob, AHalfMadeNodeIsMadeAnew) {
  const TemporaryJob temporary;
  const std::string& job = temporary.name();
  const ShmPlatform bystander(node_of(job, 1));  // the job goes on meanwhile
  const std::string file = directory_of(job) + "/node-0";
  for (const std::uintmax_t size : {std::uintmax_t{0}, sizeof(fabric::shm::NodeSegment)}) {
    std::ofstream(file).close();
    std::filesystem::resize_file(file, size);
    std::ofstream(file + ".port-1.new").close();
    const ShmPlatform next(node_of(job, 0));
    EXPECT_EQ(std::filesystem::file_size(file), sizeof(fabric::shm::NodeSegment));
    EXPECT_FALSE(exists(file + ".port-1.new"));
  }
}

TEST(ShmJob, WaitsForAProcessThatIsStoppedWhileItJoinsNoLongerThanItIsTold) {
  const TemporaryJob temporary;
  ASSERT_TRUE(std::filesystem::create_directory(directory_of(temporary.name())));
  const pmem::mapped::File stopped(
      ::open(directory_of(temporary.name()).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(stopped.get(), LOCK_EX), 0);
  ShmOptions impatient = node_of(temporary.name(), 0);
  impatient.join_timeout = Milliseconds(1);
  EXPECT_THROW(ShmPlatform{impatient}, PlatformError);
}

TEST(ShmJob, ANameIsOneOfAFile) {
  for (const std::string& name : {std::string("a/b"), std::string(".."), std::string("a\0b", 3)}) {
    EXPECT_THROW(ShmPlatform(node_of(name, 0)), UsageError);
  }
}

TEST(ShmJob, WhatAKilledJobLeftIsRemovedByTheNext) {
  const TemporaryJob temporary;
  const std::string& job = temporary.name();
  {
    Process victim([&](const Process::Voice& voice) {
      run_node(node_of(job, 0, 1), CompletionMode::event, [&](Thread& thread) -> Task<> {
        const auto region = thread.node.create_region("dram", 4096, Medium::dram);
        voice.say('k');
        for (;;) co_await sleep_for(std::chrono::hours(1));
      });
    });
    ASSERT_TRUE(victim.hears('k'));
    victim.kill();
  }
  EXPECT_TRUE(exists(directory_of(job) + "/node-0.port-1"));
  EXPECT_TRUE(exists(directory_of(job) + "/node-0.dram-0"));
  {
    const ShmPlatform next(node_of(job, 0, 2));  // of another size, even
    EXPECT_FALSE(exists(directory_of(job) + "/node-0.port-1"));
    EXPECT_FALSE(exists(directory_of(job) + "/node-0.dram-0"));
  }
  EXPECT_FALSE(exists(directory_of(job)));
}

// Those of ours in shared memory whose names have this mark; other tests have some, too.
std::vector<std::string> shared_folders(const std::string& mark) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("perdura-") && name.find(mark) != std::string::npos) found.push_back(name);
  }
  return found;
}

TEST(ShmJob, WhatAKilledJobWithoutANameLeftIsRemovedByTheNext) {
  std::string left;
  {
    Process victim([&](const Process::Voice& voice) {
      ShmPlatform platform({});
      voice.say('k');
      for (;;) ::pause();
    });
    ASSERT_TRUE(victim.hears('k'));
    left = fmt::format("auto-{}-", victim.pid());
    EXPECT_EQ(shared_folders(left).size(), 1U);
    victim.kill();
  }
  const ShmPlatform next({});
  EXPECT_TRUE(shared_folders(left).empty());
}

// In /dev/shm every user may make what has the name of a job.
TEST(ShmJob, ALinkOfThatNameLeadsNowhere) {
  const TemporaryDirectory other;
  std::ofstream(other.path() + "/file") << "kept";
  const TemporaryJob temporary;
  const std::string automatic = fabric::shm::automatic_name(temporary.name());
  for (const std::string& job : {temporary.name(), automatic}) {
    std::filesystem::create_symlink(other.path(), directory_of(job));
    EXPECT_THROW(ShmPlatform(node_of(job, 0)), PlatformError);
    const ShmPlatform removes_what_is_abandoned({});
    EXPECT_TRUE(exists(other.path() + "/file"));
    std::filesystem::remove(directory_of(job));
  }
}

TEST(ShmJob, ADirectoryThatOthersCanChangeIsNotJoined) {
  const TemporaryJob temporary;
  const std::string directory = directory_of(temporary.name());
  std::filesystem::create_directory(directory);
  std::ofstream(directory + "/file") << "kept";
  const auto expect_refused = [&] {
    EXPECT_THROW(ShmPlatform(node_of(temporary.name(), 0)), PlatformError);
    EXPECT_TRUE(exists(directory + "/file"));
  };
  ASSERT_EQ(::chmod(directory.c_str(), 0777), 0);
  expect_refused();
  if (::geteuid() == 0) {
    constexpr uid_t kNobody = 65534;
    ASSERT_EQ(::chmod(directory.c_str(), 0700), 0);
    ASSERT_EQ(::chown(directory.c_str(), kNobody, kNobody), 0);
    expect_refused();
  }
  std::filesystem::remove_all(directory);
}

// By whatever guard of a test the folders were made.
TEST(ShmJob, WhatAKilledTestLeftIsRemovedByTheNext) {
  std::string left;
  {
    Process victim([&](const Process::Voice& voice) {
      const TemporaryJob temporary;
      const TemporaryDirectory directory;
      const ShmPlatform platform(node_of(temporary.name(), 0));
      voice.say('k');
      for (;;) ::pause();
    });
    ASSERT_TRUE(victim.hears('k'));
    left = fmt::format("{}{}-", test::kTestMark, victim.pid());
    EXPECT_GE(shared_folders(left).size(), 2U);
    victim.kill();
  }
  const TemporaryJob next;
  const ShmPlatform platform(node_of(next.name(), 0));
  EXPECT_TRUE(shared_folders(left).empty());
}

TEST(ShmJob, AServerThatWaitsForEventsCostsNoCpuTime) {
  const TemporaryJob temporary;
  const std::string& job = temporary.name();
  Process server([&](const Process::Voice&) {
    ShmPlatform platform(node_of(job, 0));
    platform.start_service(0, 1, CompletionMode::event, [](Thread& thread) -> Task<> {
      for (;;) co_await thread.endpoint.next_connection();
    });
    platform.run();
    EXPECT_LT(platform.local_node(0)->cpu_time(), Milliseconds(30));
  });
  Process client([&](const Process::Voice&) {
    run_node(node_of(job, 1), CompletionMode::event,
             [](Thread&) -> Task<> { co_await sleep_for(Milliseconds(500)); });
  });
  EXPECT_EQ(client.exit_code(), 0);
  EXPECT_EQ(server.exit_code(), 0);
}

}  // namespace perdura::shm_test
