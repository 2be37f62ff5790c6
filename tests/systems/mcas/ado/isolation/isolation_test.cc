// MCAS, section 4.2: a process of active data objects is isolated. Whatever its plugin tries, it
// reaches no other pool's memory, and neither its shard nor the machine's files; and its own pool
// goes on.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/systems/mcas/ado/isolation/shard.h"

namespace perdura::systems::mcas::ado {
namespace {

using namespace test;

#define NEEDS_ISOLATION() \
  if (!can_isolate()) GTEST_SKIP() << "only root can isolate a process"

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Task<> expect_refused(TwoPools& pools, std::string request, std::string error = "EPERM") {
  EXPECT_EQ(co_await pools.ask(request), error) << request;
  EXPECT_NE(co_await pools.ask("count"), "lost") << "behind " << request;
}

// What a mapping of the other pool would show, and all ways there are to one.
TEST(AdoIsolation, OtherPoolsMemoryIsNotThere) {
  NEEDS_ISOLATION();
  for (const std::string access : {"load", "peek"}) {
    run_shard([&](Thread& thread, ShmPlatform&) -> Task<> {
      TwoPools pools(thread);
      co_await pools.start(PERDURA_HOSTILE_PLUGIN);
      EXPECT_EQ(co_await pools.ask("count"), "1");
      EXPECT_EQ(co_await pools.ask(fmt::format("load {}", 2 * kPool)), "0") << "its second part";
      EXPECT_EQ(co_await pools.ask(fmt::format("{} {}", access, kOther)), "lost");
      EXPECT_FALSE(pools.host().attached());
      co_await pools.start(PERDURA_HOSTILE_PLUGIN);
      EXPECT_EQ(co_await pools.ask("count"), "2") << "the pool goes on";
    });
  }
}

TEST(AdoIsolation, NoMappingBecomesThatOfAnotherPool) {
  NEEDS_ISOLATION();
  run_shard([&](Thread& thread, ShmPlatform&) -> Task<> {
    TwoPools pools(thread);
    co_await pools.start(PERDURA_HOSTILE_PLUGIN);
    co_await expect_refused(pools, fmt::format("grow {} {}", kPool, 2 * kPool));
    co_await expect_refused(pools, fmt::format("turn {}", kOther));
    EXPECT_EQ(co_await pools.ask(fmt::format("unlock {}", kOther)), std::string(6, '\0'));
    EXPECT_EQ(pools.region().load(kOther) & 0xFF, 's');
  });
}

TEST(AdoIsolation, NoFileIsOpened) {
  NEEDS_ISOLATION();
  run_shard([&](Thread& thread, ShmPlatform& platform) -> Task<> {
    TwoPools pools(thread);
    co_await pools.start(PERDURA_HOSTILE_PLUGIN);
    const std::string folder = platform.job_directory() + "/pm/node-0";
    EXPECT_NE(text_of(folder + "/" + kPools), "") << "that is where it is";
    const std::string self = "/proc/" + co_await pools.ask("number");
    for (const std::string& path :
         {folder + "/" + kPools, folder, std::string("/dev/shm"), std::string("/proc/self/mem"),
          self + "/maps", self + "/fd/5", std::string("/etc/passwd"), std::string("/tmp")}) {
      co_await expect_refused(pools, "read " + path, "EACCES");
    }
    co_await expect_refused(pools, "write " + folder + "/" + kPools, "EACCES");
    co_await expect_refused(pools, "write /proc/self/mem", "EACCES");
    co_await expect_refused(pools, "write " PERDURA_HOSTILE_PLUGIN, "EACCES");
    co_await expect_refused(pools, "make /tmp/perdura-hostile", "EACCES");
    EXPECT_EQ(co_await pools.ask("read " PERDURA_HOSTILE_PLUGIN), "done") << "it was named";
    co_await expect_refused(pools, "files", "file ");  // the one just opened, and no other
  });
}

TEST(AdoIsolation, NothingButTheProcessIsReached) {
  NEEDS_ISOLATION();
  run_shard([&](Thread& thread, ShmPlatform&) -> Task<> {
    TwoPools pools(thread);
    co_await pools.start(PERDURA_HOSTILE_PLUGIN);
    EXPECT_EQ(co_await pools.ask("files"), "none");
    const auto address = reinterpret_cast<std::uintptr_t>(pools.region().data() + kOther);
    co_await expect_refused(pools, fmt::format("trace {}", ::getpid()));
    co_await expect_refused(pools, fmt::format("steal {} {}", ::getpid(), address));
    co_await expect_refused(pools, fmt::format("kill {}", ::getpid()));
    for (const char* call : {"fork", "run", "root", "socket", "memory"}) {
      co_await expect_refused(pools, call);
    }
  });
}

// As the kernel says it of the running process.
TEST(AdoIsolation, AProcessHasItsOwnUserCoresAndPartsOfMemory) {
  NEEDS_ISOLATION();
  LaunchOptions options;
  options.limits.cores = {0};
  run_shard([&](Thread& thread, ShmPlatform&) -> Task<> {
    TwoPools pools(thread, options);
    co_await pools.start(PERDURA_HOSTILE_PLUGIN);
    const std::string number = co_await pools.ask("number");
    const std::string status = text_of("/proc/" + number + "/status");
    const auto user = options.limits.first_user + static_cast<unsigned>(std::stoul(number));
    EXPECT_NE(status.find(fmt::format("\nUid:\t{0}\t{0}\t{0}\t{0}\n", user)), status.npos);
    EXPECT_NE(status.find(fmt::format("\nGid:\t{0}\t{0}\t{0}\t{0}\n", user)), status.npos);
    EXPECT_NE(status.find("\nGroups:\t \n"), status.npos) << status;
    EXPECT_NE(status.find("\nCapPrm:\t0000000000000000\n"), status.npos);
    EXPECT_NE(status.find("\nNoNewPrivs:\t1\n"), status.npos);
    EXPECT_NE(status.find("\nSeccomp:\t2\n"), status.npos);
    EXPECT_NE(status.find("\nThreads:\t1\n"), status.npos);
    EXPECT_NE(status.find("\nCpus_allowed_list:\t0\n"), status.npos);
    Bytes mapped = 0;
    std::istringstream maps(text_of("/proc/" + number + "/maps"));
    for (std::string line; std::getline(maps, line);) {
      if (!line.ends_with(kPools)) continue;
      std::uint64_t begin = 0;
      std::uint64_t end = 0;
      std::sscanf(line.c_str(), "%lx-%lx", &begin, &end);
      mapped += end - begin;
    }
    EXPECT_EQ(mapped, 2 * kPool);
  });
}

TEST(AdoIsolation, AProcessThatTakesTooMuchMemoryDiesAlone) {
  NEEDS_ISOLATION();
  LaunchOptions options;
  options.limits.memory = 32 * MiB;
  run_shard([&](Thread& thread, ShmPlatform&) -> Task<> {
    TwoPools pools(thread, options);
    co_await pools.start(PERDURA_HOSTILE_PLUGIN);
    EXPECT_EQ(co_await pools.ask("eat"), "lost");
    co_await pools.start(PERDURA_HOSTILE_PLUGIN);
    EXPECT_EQ(co_await pools.ask("count"), "1");
  });
}

}  // namespace
}  // namespace perdura::systems::mcas::ado
