// Measures operations and mounts of the file systems on this machine, on shm and without FUSE, by a
// thread that calls the service. If the environment variable PERDURA_BENCH_DIRECTORY names a
// directory of the machine's own, the same is done there by system calls. docs/systems/nova.md
// compares them.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "platform/pmem/region.h"
#include "platform/runtime/sync.h"
#include "platform/shm/shm_platform.h"
#include "systems/registry/registry.h"

namespace perdura::bench::micro {
namespace {

constexpr std::uint64_t kNames = 100000;  // most names in a directory before it is emptied

enum class What : std::uint8_t { read, write, create };

// The number of blocks of the file that is read and written. Its size is 1 MiB, which the
// processor's caches keep, or 64 MiB, which they do not.
Bytes file_blocks(const benchmark::State& state) {
  return static_cast<Bytes>(state.range(0)) * MiB / fs::kBlock;
}
void of_files(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("file_MiB")->Arg(1)->Arg(64);
}
// Benchmarks that create files have this argument, too, but do not use it.
void of_names(benchmark::internal::Benchmark* benchmark) { benchmark->ArgName("file_MiB")->Arg(1); }

// The state of a write when its system call returns. In our file systems it is durable by then.
enum class Writes : std::uint8_t { cached, durable };

Task<> operate(benchmark::State& state, Thread& thread, const fs::FsSystem& system, What what) {
  const fs::FsConfig config{.size = 1 * GiB};
  // Counting the bytes that a store changes would read what it replaces.
  pmem::thread_write_meter().set_level(pmem::WriteMeter::Level::issued);
  co_await system.make(thread, "bench", config);
  const auto files = co_await system.mount(thread, "bench", config);
  const auto session = files->attach(thread);
  const fs::NewInode file{.mode = S_IFREG | 0644};
  const auto made = co_await session->create(fs::kRootInode, "file", file, {});
  const auto inode = made->inode;
  std::vector<std::byte> block(fs::kBlock, std::byte{1});
  const Bytes blocks = file_blocks(state);
  for (Bytes i = 0; i < blocks; ++i) {
    co_await session->write(inode, i * fs::kBlock, block, {});
  }
  std::minstd_rand random(1);
  std::uint64_t created = 0;
  for ([[maybe_unused]] auto _ : state) {
    const Bytes place = random() % blocks * fs::kBlock;
    if (what == What::read) {
      co_await session->read(inode, place, block);
    } else if (what == What::write) {
      co_await session->write(inode, place, block, {});
    } else {
      std::array<char, 24> name;
      const auto end = fmt::format_to(name.data(), "f{}", created++);
      const auto result =
          co_await session->create(fs::kRootInode, std::string_view(name.data(), end), file, {});
      if (!result) state.SkipWithError("a file was not created");
      if (created % kNames != 0) continue;
      state.PauseTiming();
      for (; created > 0; --created) {
        co_await session->unlink(fs::kRootInode, fmt::format("f{}", created - 1), {});
      }
      state.ResumeTiming();
    }
  }
  state.SetItemsProcessed(state.iterations());
}

void of_a_system(benchmark::State& state, What what) {
  ShmPlatform platform(ShmOptions{});
  platform.start(0, 0, CompletionMode::polling, [&](Thread& thread) {
    return operate(state, thread, systems::fs_systems()[0], what);
  });
  platform.run();
}
BENCHMARK_CAPTURE(of_a_system, read, What::read)->Apply(of_files);
BENCHMARK_CAPTURE(of_a_system, write, What::write)->Apply(of_files);
BENCHMARK_CAPTURE(of_a_system, create, What::create)->Apply(of_names);

// Mounts a file system with as many files as the first argument says, three in ten of which have
// data, in directories of a thousand; the second argument is the number of threads. One iteration
// is one mount.
Task<> mount_many(benchmark::State& state, Thread& thread, const fs::FsSystem& system,
                  bool unmounts) {
  constexpr std::uint64_t kInADirectory = 1000;
  const auto count = static_cast<std::uint64_t>(state.range(0));
  const std::uint64_t inodes = count + count / kInADirectory + 16;
  const fs::FsConfig config{.size = 64 * MiB + count * 4 * KiB,
                            .threads = static_cast<std::uint32_t>(state.range(1)),
                            .parameters = {{"inodes", inodes}}};
  pmem::thread_write_meter().set_level(pmem::WriteMeter::Level::issued);
  co_await system.make(thread, "bench", config);
  {
    const auto files = co_await system.mount(thread, "bench", config);
    {
      const auto session = files->attach(thread);
      const std::vector<std::byte> data(100, std::byte{1});
      fs::InodeNumber directory{};
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::string name = fmt::format("f{}", i);
        if (i % kInADirectory == 0) {
          const auto made = co_await session->create(fs::kRootInode, fmt::format("d{}", i),
                                                     {.mode = S_IFDIR | 0755}, {});
          directory = made->inode;
        }
        const auto made = co_await session->create(directory, name, {.mode = S_IFREG | 0644}, {});
        if (i % 10 < 3 && !co_await session->write(made->inode, 0, data, {})) {
          state.SkipWithError("a file was not written");
        }
      }
    }
    if (unmounts) co_await files->unmount();
  }
  for ([[maybe_unused]] auto _ : state) {
    auto files = co_await system.mount(thread, "bench", config);
    state.PauseTiming();
    if (unmounts) co_await files->unmount();
    files.reset();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void mount(benchmark::State& state, bool unmounts) {
  ShmPlatform platform(ShmOptions{});
  platform.start(0, 0, CompletionMode::polling, [&](Thread& thread) {
    return mount_many(state, thread, systems::fs_systems()[0], unmounts);
  });
  platform.run();
}
BENCHMARK_CAPTURE(mount, after_a_failure, false)
    ->ArgNames({"files", "threads"})
    ->ArgsProduct({{10000, 1000000}, {1, 2}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(mount, after_an_unmount, true)
    ->ArgNames({"files", "threads"})
    ->ArgsProduct({{10000, 1000000}, {1}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// The least that a read and a write have to do, in memory of the same kind and size: take a lock,
// which also keeps the processor from beginning the next operation early, copy, flush and fence
// (docs/systems/nova.md).
Task<> copy(benchmark::State& state, Thread& thread, What what) {
  const Bytes blocks = file_blocks(state);
  const Bytes size = blocks * fs::kBlock;
  pmem::thread_write_meter().set_level(pmem::WriteMeter::Level::issued);
  const auto region = thread.node.create_region("floor", size + 2 * fs::kBlock, pmem::Medium::pm);
  std::vector<std::byte> block(fs::kBlock, std::byte{1});
  for (Bytes at = 0; at < size; at += fs::kBlock) region->write_streaming(at, block);
  const auto line = std::span(block).first(kCacheLine);
  const Bytes tail = size + fs::kBlock;
  Bytes entry = 0;
  SharedSpinLock lock;
  std::minstd_rand random(1);
  for ([[maybe_unused]] auto _ : state) {
    const Bytes place = random() % blocks * fs::kBlock;
    if (what == What::read) {
      lock.lock_shared();
      std::memcpy(block.data(), region->data() + place, fs::kBlock);
      lock.unlock_shared();
      continue;
    }
    lock.lock();
    region->write_streaming(place, block);
    region->write(size + entry, line);
    region->persist(size + entry, kCacheLine);
    entry = (entry + kCacheLine) % fs::kBlock;
    region->store(tail, entry);
    region->persist(tail, kWord);
    lock.unlock();
  }
  state.SetItemsProcessed(state.iterations());
  co_return;
}

void of_memory(benchmark::State& state, What what) {
  ShmPlatform platform(ShmOptions{});
  platform.start(0, 0, CompletionMode::polling,
                 [&](Thread& thread) { return copy(state, thread, what); });
  platform.run();
}
BENCHMARK_CAPTURE(of_memory, read, What::read)->Apply(of_files);
BENCHMARK_CAPTURE(of_memory, write, What::write)->Apply(of_files);

void of_the_machine(benchmark::State& state, What what, Writes writes = Writes::cached) {
  const char* const directory = std::getenv("PERDURA_BENCH_DIRECTORY");
  if (directory == nullptr) {
    for ([[maybe_unused]] auto _ : state) {
    }
    state.SetLabel("no PERDURA_BENCH_DIRECTORY");
    return;
  }
  const std::string path = fmt::format("{}/perdura-bench-{}", directory, getpid());
  const int file = open(path.c_str(), O_CREAT | O_RDWR, 0644);
  std::vector<std::byte> block(fs::kBlock, std::byte{1});
  bool whole = file >= 0;
  const Bytes blocks = file_blocks(state);
  for (Bytes i = 0; i < blocks && whole; ++i) {
    whole = pwrite(file, block.data(), block.size(), static_cast<off_t>(i * fs::kBlock)) > 0;
  }
  const int writer = open(path.c_str(), O_WRONLY | (writes == Writes::durable ? O_DSYNC : 0));
  if (!whole || writer < 0) state.SkipWithError("the file cannot be written");
  std::minstd_rand random(1);
  std::uint64_t created = 0;
  const auto name = [&](std::uint64_t number) { return fmt::format("{}-{}", path, number); };
  for ([[maybe_unused]] auto _ : state) {
    const auto place = static_cast<off_t>(random() % blocks * fs::kBlock);
    if (what == What::read) {
      whole = pread(file, block.data(), block.size(), place) > 0;
    } else if (what == What::write) {
      whole = pwrite(writer, block.data(), block.size(), place) > 0;
    } else {
      const int made = open(name(created++).c_str(), O_CREAT | O_WRONLY, 0644);
      if (writes == Writes::durable) fsync(made);
      whole = close(made) == 0;
      if (created % kNames == 0) {
        state.PauseTiming();
        for (; created > 0; --created) unlink(name(created - 1).c_str());
        state.ResumeTiming();
      }
    }
    if (!whole) state.SkipWithError("the machine's file system refused it");
  }
  for (; created > 0; --created) unlink(name(created - 1).c_str());
  close(writer);
  close(file);
  unlink(path.c_str());
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(of_the_machine, read, What::read)->Apply(of_files);
BENCHMARK_CAPTURE(of_the_machine, write, What::write)->Apply(of_files);
BENCHMARK_CAPTURE(of_the_machine, create, What::create)->Apply(of_names);
BENCHMARK_CAPTURE(of_the_machine, durable_write, What::write, Writes::durable)->Apply(of_files);
BENCHMARK_CAPTURE(of_the_machine, durable_create, What::create, Writes::durable)->Apply(of_names);

}  // namespace
}  // namespace perdura::bench::micro
