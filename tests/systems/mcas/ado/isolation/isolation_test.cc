// MCAS, section 4.2: a process of active data objects is isolated. Whatever its plugin tries, it
// reaches no other pool's memory, and neither its shard nor the machine's files; and its own pool
// goes on.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <fstream>
#include <sstream>

#include "platform/pmem/mapped/mapping.h"
#include "tests/platform/shm/process.h"
#include "tests/systems/mcas/ado/isolation/shard.h"

namespace perdura::systems::mcas::ado {
namespace {

using namespace test;
using pmem::mapped::File;

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

// Of all system calls, whatever they are, but these.
TEST(AdoIsolation, NoCallIsAllowedThatComputingDoesNotNeed) {
  NEEDS_ISOLATION();
  // Those of probes the kernel filters for nobody: where no probe is, they end the caller.
  std::string needed = " 335 336";
#if defined(__SANITIZE_ADDRESS__)
  needed += fmt::format(" {}", SYS_pipe2);
#endif
  for (const long call : {SYS_read,
                          SYS_pread64,
                          SYS_write,
                          SYS_writev,
                          SYS_close,
                          SYS_openat,
                          SYS_newfstatat,
                          SYS_fstat,
                          SYS_lseek,
                          SYS_getcwd,
                          SYS_mmap,
                          SYS_mprotect,
                          SYS_munmap,
                          SYS_brk,
                          SYS_madvise,
                          SYS_futex,
                          SYS_sched_yield,
                          SYS_nanosleep,
                          SYS_gettimeofday,
                          SYS_clock_nanosleep,
                          SYS_clock_gettime,
                          SYS_getrandom,
                          SYS_getpid,
                          SYS_gettid,
                          SYS_rt_sigaction,
                          SYS_rt_sigprocmask,
                          SYS_rt_sigreturn,
                          SYS_sigaltstack,
                          SYS_restart_syscall,
                          SYS_exit,
                          SYS_exit_group}) {
    needed += ' ' + std::to_string(call);
  }
  run_shard([&](Thread& thread, ShmPlatform&) -> Task<> {
    TwoPools pools(thread);
    co_await pools.start(PERDURA_HOSTILE_PLUGIN);
    EXPECT_EQ(co_await pools.ask("calls" + needed), "none");
    // And of those what computing does not need.
    for (const int operation : {FUTEX_LOCK_PI, FUTEX_CMP_REQUEUE_PI, FUTEX_WAIT_REQUEUE_PI,
                                FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG}) {
      co_await expect_refused(pools, fmt::format("wait {}", operation));
    }
    EXPECT_EQ(co_await pools.ask(fmt::format("wait {}", FUTEX_WAKE_PRIVATE)), "done");
    for (const int advice : {MADV_REMOVE, MADV_MERGEABLE, MADV_PAGEOUT}) {
      co_await expect_refused(pools, fmt::format("advise {}", advice));
    }
    EXPECT_EQ(co_await pools.ask(fmt::format("advise {}", MADV_DONTNEED)), "done");
    co_await expect_refused(pools, "huge");
    co_await expect_refused(pools, "truncate " PERDURA_HOSTILE_PLUGIN);
    // The shard's stderr, also with what the kernel does not look at.
    for (const unsigned long long more : {0ULL, 1ULL << 32, ~0xFFULL << 32}) {
      co_await expect_refused(pools, fmt::format("seek {} {}", STDERR_FILENO, more));
    }
  });
}

// A message on stderr ends nobody, whatever stderr is. A file does not grow by it, or a plugin
// could fill the disk.
TEST(AdoIsolation, WhatAPluginSaysEndsNobodyAndFillsNoDisk) {
  NEEDS_ISOLATION();
  const shm_test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/stderr";
  for (const bool file : {true, false}) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const File end(pipe[0]);
    const File other_end(pipe[1]);
    const File log(::open(path.c_str(), O_WRONLY | O_CREAT, 0600));
    const File stderr_of_test(::dup(STDERR_FILENO));
    ASSERT_GE(::dup2(file ? log.get() : other_end.get(), STDERR_FILENO), 0);
    run_shard([&](Thread& thread, ShmPlatform&) -> Task<> {
      TwoPools pools(thread);
      co_await pools.start(PERDURA_HOSTILE_PLUGIN);
      EXPECT_EQ(co_await pools.ask("say"), file ? "EFBIG" : "done");
      EXPECT_EQ(co_await pools.ask("count"), "1");
    });
    ::dup2(stderr_of_test.get(), STDERR_FILENO);
  }
  EXPECT_EQ(text_of(path), "");
}

// Numbers of calls mean something else there.
TEST(AdoIsolation, CodeOfAnotherArchitectureEndsTheProcess) {
  NEEDS_ISOLATION();
  for (const char* call : {"x32", "i386"}) {
    run_shard([&](Thread& thread, ShmPlatform&) -> Task<> {
      TwoPools pools(thread);
      co_await pools.start(PERDURA_HOSTILE_PLUGIN);
      EXPECT_EQ(co_await pools.ask(call), "lost");
      co_await pools.start(PERDURA_HOSTILE_PLUGIN);
      EXPECT_EQ(co_await pools.ask("count"), "1");
    });
  }
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
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "with AddressSanitizer its memory is not limited";
#endif
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
