// The mirror of the metadata server (sections 4.1.1 and 4.3.4): "All metadata updates flow to the
// primary MDS, which propagates the changes to the mirror."
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "explore/crash.h"
#include "explore/explored.h"
#include "explore/soak.h"
#include "platform/base/error.h"
#include "platform/sim/sim_platform.h"
#include "services/fs/crash/service.h"
#include "systems/orion/orion.h"
#include "tests/services/fs/bytes_of.h"
#include "tests/services/fs/home.h"
#include "tests/support/platforms.h"
#include "tests/systems/orion/group.h"

namespace perdura::systems::orion::test {
namespace {

using fs::kRootInode;
using fs::test::Home;
using services::Condition;

constexpr NodeId kFirstMds = 0;
constexpr NodeId kMirror = 1;
constexpr NodeId kClientOfPair = 3;

fs::FsCluster with_mirror() {
  fs::FsCluster cluster = *kOrion.cluster;
  cluster.small = cluster.small_with_mirror;
  return cluster;
}

// Orion, whose small file systems have a mirror.
const fs::FsSystem& mirrored() {
  static const fs::FsCluster cluster = with_mirror();
  static const fs::FsSystem system = [] {
    fs::FsSystem result = kOrion;
    result.cluster = &cluster;
    return result;
  }();
  return system;
}

fs::FsConfig config(bool correct) {
  fs::FsConfig config{.size = 4 * MiB, .threads = 2};
  if (!correct) return config;
  config.data_method = methods::choose(methods::configurations(), *kOrion.cluster->update, {});
  config.mirror_method =
      methods::choose(methods::configurations(), *kOrion.cluster->mirror_update, {});
  return config;
}

// Runs `body` with a session, on a platform.
void run_mirrored(const std::string& platform_name, bool correct,
                  const std::function<Task<>(fs::Session&, Platform&)>& body) {
  Home home(mirrored(), config(correct));
  const auto platform =
      perdura::test::make_platform(platform_name, fs::test::nodes_for(mirrored(), 1));
  home.start(*platform);
  platform->start(kClientOfPair, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await home.make(thread, {});
    const auto files = co_await home.mount(thread);
    const auto session = files->attach(thread);
    co_await body(*session, *platform);
    const std::string contradiction = co_await home.audit();
    EXPECT_EQ(contradiction, "");
  });
  platform->run();
}

TEST(OrionMirror, FollowsOnEachPlatform) {
  for (const char* const platform : {"sim", "shm"}) {
    for (const bool correct : {false, true}) {
      SCOPED_TRACE(platform);
      run_mirrored(platform, correct, [](fs::Session& session, Platform&) -> Task<> {
        const auto data = fs::bytes_of("what it says");
        for (int i = 0; i < 40; ++i) {
          const std::string name = "file " + std::to_string(i);
          const auto made = co_await session.create(kRootInode, name, {.mode = S_IFREG | 0644}, {});
          EXPECT_TRUE(made.has_value());
          if (!made) co_return;
          EXPECT_TRUE((co_await session.write(made->inode, 0, data, {})).has_value());
        }
        for (int i = 0; i < 40; i += 2) {
          const std::string name = "file " + std::to_string(i);
          EXPECT_TRUE((co_await session.unlink(kRootInode, name, {})).has_value());
        }
        const auto entries = co_await session.entries(kRootInode, 0, 100);
        EXPECT_EQ(entries->size(), 20U);
      });
    }
  }
}

// Section 3.2.2: a sync point is a SEND into the mirror's log for each range. Those of a commit are
// the entry and the tail, a line each, with a header of a line.
TEST(OrionMirror, GetsTheTwoLinesOfACommit) {
  run_mirrored("sim", false, [](fs::Session& session, Platform& platform) -> Task<> {
    const auto made = co_await session.create(kRootInode, "file", {.mode = S_IFREG | 0644}, {});
    const auto data = std::vector<std::byte>(4096, std::byte{1});
    co_await session.write(made->inode, 0, data, {});
    const auto received = [&] { return platform.local_node(kMirror)->traffic()[kMirror].received; };
    const Bytes before = received();
    co_await session.write(made->inode, 0, data, {});
    const Bytes grown = received() - before;
    EXPECT_GE(grown, 4 * kCacheLine);
    EXPECT_LT(grown, 5 * kCacheLine);  // with the headers of the network
  });
}

services::CrashSetup setup() {
  return {.model = {pmem::PersistenceDomain::dmp, true},
          .parameters = {{"mirrors", std::uint64_t{1}}},
          .correct = true};
}

void expect_durable(std::uint64_t stride, explore::FailureKind failure, NodeId failing) {
  const fs::FsService service(std::span(&kOrion, 1));
  explore::CrashOptions options;
  options.setup = setup();
  options.stride = stride;
  options.fails.kind = failure;
  options.fails.servers = failing;
  options.recoveries = 3;
  options.threads = 1;
  const explore::CrashResult result = explore::explore_crashes(
      {&service, kOrion.info}, perdura::test::erda_testbed(), std::move(options));
  EXPECT_TRUE(result[Condition::durable].held) << result[Condition::durable].first_loss;
}

// A primary that starts again loads its memory from the mirror. So these find what the mirror has,
// after the failure of all nodes and of each of them alone.
TEST(OrionMirror, HasWhatWasAnsweredWhenThePowerFails) {
  expect_durable(23, explore::FailureKind::power, 0);
}
TEST(OrionMirror, HasWhatWasAnsweredWhenANodeFails) {
  expect_durable(151, explore::FailureKind::power, 1);
}
TEST(OrionMirror, HasWhatWasAnsweredWhenAProcessDies) {
  expect_durable(151, explore::FailureKind::process, 1);
}

// Up to three failures, of all nodes or of one, which is back at once or after the takeover.
TEST(OrionMirror, KeepsWhatSessionsThatShareFilesHaveDone) {
  const fs::FsService service(std::span(&kOrion, 1));
  const services::CrashSetup mirrored_setup = setup();
  explore::SoakCase one{{&service, kOrion.info},
                        {"mirrors", mirrored_setup.parameters, mirrored_setup.correct},
                        mirrored_setup.model,
                        services::GuaranteeLevel::durable};
  explore::CaseSoak soak(std::move(one), perdura::test::erda_testbed(), 1);
  for (int run = 0; run < 50; ++run) {
    const auto finding = soak.next();
    if (finding)
      std::printf("TAPE %s\nEVENTS %s\n", finding->tape.c_str(), finding->run.events.c_str());
    ASSERT_FALSE(finding.has_value()) << finding->text();
  }
}

// Nothing that the mirror lacks may be told to anybody. Here it stands still while a session creates a
// file: another session must not see the file before the mirror goes on.
TEST(OrionMirror, LacksNothingThatASessionSees) {
  const Time stands_still{std::chrono::milliseconds(20)};
  const Time goes_on{std::chrono::milliseconds(21)};
  Home home(mirrored(), config(true));
  sim::SimPlatform platform(perdura::test::erda_testbed(), fs::test::nodes_for(mirrored(), 1));
  for (std::uint32_t thread = 0; thread < 4; ++thread) {
    platform.stall(kMirror, thread, {{stands_still, goes_on}});
  }
  home.start(platform);
  std::shared_ptr<fs::FileSystem> files;
  std::optional<Time> created;
  std::optional<Time> seen;
  platform.start(kClientOfPair, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await home.make(thread, {});
    files = co_await home.mount(thread);
    const auto session = files->attach(thread);
    EXPECT_LT(thread.executor.now(), stands_still);
    co_await sleep_for(stands_still + Microseconds(10) - thread.executor.now());
    co_await make_file(*session, "file");
    created = thread.executor.now();
    while (!seen) co_await sleep_for(Microseconds(10));
  });
  platform.start(kClientOfPair, 2, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    while (!files) co_await sleep_for(Microseconds(10));
    const auto session = files->attach(thread);
    while (!seen) {
      if (co_await session->look_up(kRootInode, "file")) seen = thread.executor.now();
      co_await sleep_for(Microseconds(2));
    }
  });
  platform.run();
  ASSERT_TRUE(created && seen);
  EXPECT_GE(*created, goes_on);
  EXPECT_GE(*seen, goes_on);
}

// Names that a new mount finds.
Task<std::size_t> count_names(Home& home, Thread& thread) {
  const auto files = co_await home.mount(thread);
  const auto session = files->attach(thread);
  const auto entries = co_await session->entries(kRootInode, 0, 100);
  co_return entries ? entries->size() : 0;
}

// Creates files by a mount of its own, each of which must succeed.
Task<> create_files(Home& home, Thread& thread, std::string prefix, int count) {
  const auto files = co_await home.mount(thread);
  const auto session = files->attach(thread);
  const auto data = std::vector<std::byte>(4096, std::byte{1});
  for (int i = 0; i < count; ++i) {
    const InodeNumber file = co_await make_file(*session, prefix + std::to_string(i));
    const auto written = co_await session->write(file, 0, data, {});
    EXPECT_TRUE(written.has_value());
  }
}

// "When the primary fails, the mirror takes over [...] while the primary recovers." Then the former
// primary is the mirror, and takes over in turn.
TEST(OrionMirror, TakesOver) {
  constexpr Picoseconds kUntilItFollows = std::chrono::milliseconds(20);
  constexpr Time kEnd{std::chrono::seconds(60)};
  Home home(mirrored(), config(true));
  sim::SimPlatform platform(perdura::test::erda_testbed(), fs::test::nodes_for(mirrored(), 1));
  bool has_ended = false;
  platform.at(kEnd, [&] { platform.kill(kClientOfPair); });
  home.start(platform);
  platform.start(kClientOfPair, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto kill = [&](NodeId node) {
      platform.at(thread.executor.now(), [&platform, node] { platform.kill(node); });
      return sleep_for(Microseconds(100));
    };
    const auto start = [&](NodeId node) {
      platform.at(thread.executor.now(), [&, node] { home.start(platform, node); });
      return sleep_for(kUntilItFollows);
    };
    co_await home.make(thread, {});
    co_await create_files(home, thread, "first ", 4);
    {
      const auto files = co_await home.mount(thread);
      const auto session = files->attach(thread);
      EXPECT_TRUE((co_await session->look_up(kRootInode, "first 0")).has_value());
      co_await kill(kFirstMds);
      // The session connects to the mirror.
      co_await make_file(*session, "first 4");
    }
    EXPECT_EQ(co_await count_names(home, thread), 5U);
    co_await create_files(home, thread, "at the mirror ", 4);
    co_await start(kFirstMds);
    co_await create_files(home, thread, "at both ", 4);
    co_await kill(kMirror);
    EXPECT_EQ(co_await count_names(home, thread), 13U);
    co_await create_files(home, thread, "at the first ", 4);
    // It has gone on alone, so it does that again.
    co_await kill(kFirstMds);
    co_await start(kFirstMds);
    EXPECT_EQ(co_await count_names(home, thread), 17U);
    co_await start(kMirror);
    co_await create_files(home, thread, "at both again ", 4);
    co_await kill(kFirstMds);
    EXPECT_EQ(co_await count_names(home, thread), 21U);
    has_ended = true;
  });
  platform.run();
  EXPECT_TRUE(has_ended) << "nobody is the MDS any more";
}

// The former primary is at the end of the line: it passes nothing on.
TEST(OrionMirror, TheFormerPrimaryFollowsForLongerThanItsLogIs) {
  constexpr Picoseconds kUntilItFollows = std::chrono::milliseconds(20);
  constexpr Picoseconds kEnough = std::chrono::milliseconds(200);
  fs::FsConfig small = config(true);
  small.parameters["mirror_slots"] = std::uint64_t{64};
  Home home(mirrored(), small);
  sim::SimPlatform platform(perdura::test::erda_testbed(), fs::test::nodes_for(mirrored(), 1));
  home.start(platform);
  platform.start(kClientOfPair, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await home.make(thread, {});
    co_await create_files(home, thread, "first ", 1);
    platform.at(thread.executor.now(), [&] { platform.kill(kFirstMds); });
    co_await sleep_for(Microseconds(100));
    co_await create_files(home, thread, "at the mirror ", 1);
    // It has never received anything, so it does not refuse what is passed on to it either.
    platform.at(thread.executor.now(), [&] { platform.kill(kMirror); });
    co_await sleep_for(Microseconds(100));
    for (const NodeId node : {kMirror, kFirstMds}) {
      platform.at(thread.executor.now(), [&, node] { home.start(platform, node); });
      co_await sleep_for(kUntilItFollows);
    }
    bool is_done = false;
    const auto create_many = [](Home& in, Thread& by, bool& done) -> Task<> {
      co_await create_files(in, by, "at both ", 60);
      done = true;
    };
    thread.executor.spawn(create_many(home, thread, is_done));
    co_await sleep_for(kEnough);
    EXPECT_TRUE(is_done);
  });
  platform.run();
}

// The mirror's memory is replaced by a new one, which is empty.
Task<> replace_mirror(Group& group) {
  co_await group.power_fails(kMirrorOfMds);
  group.replace_memory(kMirrorOfMds);
  co_await group.comes_back(kMirrorOfMds);
}

GivenParameters parameters_of_pair() {
  const std::uint64_t patience = 1'000'000;
  return {{"client_patience_us", patience},
          {"mds_patience_us", patience},
          {"takeover_after_us", std::uint64_t{500}},
          {"mirror_timeout_us", std::uint64_t{2000}}};
}

Task<> expect_names(fs::Session& session, std::size_t count) {
  const auto entries = co_await session.entries(kRootInode, 0, 1000);
  EXPECT_TRUE(entries && entries->size() == count)
      << "names: " << (entries ? static_cast<int>(entries->size()) : -1) << ", not " << count;
}

// The MDS finds a mirror that has nothing when it starts again. It must not take that for what it has
// acknowledged.
TEST(OrionMirror, OneWithANewMemoryIsNotLoaded) {
  constexpr Picoseconds kUntilBothHaveIt = std::chrono::milliseconds(100);
  Group group(parameters_of_pair(), true);
  group.run_with_file([&](Thread& thread, fs::Session& session, InodeNumber file) -> Task<> {
    co_await write_pages(session, file, 0, 5, 1);
    for (int i = 0; i < 3; ++i) {
      co_await replace_mirror(group);
      co_await group.power_fails(kMds);
      co_await group.comes_back(kMds);
      co_await sleep_for(kUntilBothHaveIt);
      co_await expect_pages(group, thread, file, 0, 5, 1);
      co_await make_file(session, std::to_string(i));
      co_await expect_names(session, 2U + i);
    }
    // The mirror has it again, too.
    co_await group.power_fails(kMds);
    co_await make_file(session, "at the mirror");
    co_await expect_names(session, 5);
    co_await expect_pages(group, thread, file, 0, 5, 1);
  });
}

// Renames a file to and fro, until it is told to end.
struct Renaming {
  std::unique_ptr<fs::Session> session;
  std::string name;
  std::uint64_t done = 0;
  bool ends = false;
  bool has_ended = false;

  static Task<> run(Renaming& self) {
    const std::string names[] = {self.name, self.name + " renamed"};
    for (std::size_t i = 0; !self.ends; ++i) {
      const auto renamed = co_await self.session->rename(kRootInode, names[i % 2], kRootInode,
                                                         names[(i + 1) % 2], {}, {});
      if (renamed) ++self.done;
    }
    self.has_ended = true;
  }
};

// The same while the MDS runs, and goes on changing its memory: the mirror is given all of it. If there is
// `fails_after`, the MDS fails so long after the mirror was back. Returns when the first operation had ended
// after that.
Picoseconds give_everything(std::optional<Picoseconds> fails_after) {
  Group group(parameters_of_pair(), true);
  Picoseconds taken{};
  group.run_with_file([&](Thread& thread, fs::Session& session, InodeNumber file) -> Task<> {
    co_await write_pages(session, file, 0, 5, 1);
    const auto others = co_await group.mount(thread);
    std::array<Renaming, 4> renaming;
    for (std::size_t i = 0; i < renaming.size(); ++i) {
      renaming[i].session = others->attach(thread);
      renaming[i].name = std::to_string(i);
      co_await make_file(*renaming[i].session, renaming[i].name);
      thread.executor.spawn(Renaming::run(renaming[i]));
    }
    co_await replace_mirror(group);
    const Time since = thread.executor.now();
    const std::uint64_t before = renaming[0].done;
    if (fails_after) {
      co_await sleep_for(*fails_after);
      co_await group.power_fails(kMds);
      co_await sleep_for(Milliseconds(10));
      // It is the mirror now, or goes on if that had not got everything.
      co_await group.comes_back(kMds);
      co_await sleep_for(Milliseconds(100));
    } else {
      while (renaming[0].done == before) co_await sleep_for(Microseconds(1));
      taken = thread.executor.now() - since;
    }
    for (Renaming& one : renaming) one.ends = true;
    for (const Renaming& one : renaming) {
      while (!one.has_ended) co_await sleep_for(Microseconds(100));
    }
    co_await expect_names(session, 1 + renaming.size());
    for (const Renaming& one : renaming) {
      const auto first = co_await session.look_up(kRootInode, one.name);
      const auto second = co_await session.look_up(kRootInode, one.name + " renamed");
      EXPECT_NE(first.has_value(), second.has_value());
      EXPECT_FALSE((first && first->damaged) || (second && second->damaged));
    }
    co_await expect_pages(group, thread, file, 0, 5, 1);
  });
  return taken;
}

TEST(OrionMirror, OneWithANewMemoryIsGivenEverything) {
  const Picoseconds taken = give_everything(std::nullopt);
  for (int before = -5; before < 25; before += 5) {
    SCOPED_TRACE(before);
    give_everything(taken - Microseconds(1) * before);
  }
}

void expect_refused(const fs::FsConfig& config, const std::string& why) {
  try {
    kOrion.check(config);
    FAIL() << why;
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
  }
}

TEST(OrionMirror, IsOne) {
  fs::FsConfig config{.size = 4 * MiB};
  config.servers = {{0, fs::FsRole::metadata}, {1, fs::FsRole::store}};
  config.parameters = {{"mirrors", std::uint64_t{1}}};
  expect_refused(config, "mirrors is 1, but 0 of the nodes have that role");
  config.servers.push_back({2, fs::FsRole::mirror});
  EXPECT_NO_THROW(kOrion.check(config));
  config.parameters["network_threads"] = std::uint64_t{2};
  expect_refused(config, "one network thread");
  config.servers.push_back({3, fs::FsRole::mirror});
  expect_refused(config, "one mirror, and has more");
}

}  // namespace
}  // namespace perdura::systems::orion::test
