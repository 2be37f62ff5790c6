#include "bench/probe/memory_probes.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <memory>

namespace perdura::bench {
namespace {

using pmem::Medium;

// So small that it fits into the nearest cache, and its translations into the TLB.
constexpr Bytes kHot = 16 * KiB;

double nanoseconds(Picoseconds time) { return static_cast<double>(time.count()) * 1e-3; }

// Creates a region. On a real platform all its pages are populated; a model has none.
std::unique_ptr<pmem::Region> create_region(Platform& platform, const char* name, Medium medium,
                                            Bytes size, MemoryPlace place = {}) {
  auto region = platform.local_node(0)->create_region_at(place, name, size, medium);
  if (!platform.modelled()) std::memset(region->data(), 0, size);
  return region;
}

// Runs the body in one thread of node 0. In a process that runs other nodes the result is empty.
using Values = std::vector<double>;
Values measure_alone(Platform& platform, const std::function<Task<>(Thread&, Values*)>& body) {
  Values values;
  if (platform.local_node(0) != nullptr) {
    platform.start(0, 1, CompletionMode::polling,
                   [&](Thread& thread) { return body(thread, &values); });
  }
  platform.run();
  return values;
}

struct Chase {
  pmem::Region* region;
  Bytes length;
  CacheState state;
  std::uint64_t loads;
  std::uint32_t repetitions;
};

Task<> time_chase(Thread& thread, Chase chase, Values* values) {
  const std::uint64_t lines = chase.length / kCacheLine;
  // Flushed lines are loaded once per round, since loading takes them back into the caches;
  // otherwise all loads are done in one round.
  const bool flushed = chase.state == CacheState::flushed;
  const std::uint64_t loads = flushed ? lines : chase.loads;
  const std::uint64_t rounds = flushed ? std::max<std::uint64_t>(chase.loads / lines, 1) : 1;
  Bytes at = 0;
  if (chase.state == CacheState::hot) at = follow_chain(*chase.region, at, lines);
  for (std::uint32_t i = 0; i < chase.repetitions; ++i) {
    Picoseconds spent{};
    for (std::uint64_t round = 0; round < rounds; ++round) {
      if (flushed) evict(*chase.region, chase.length);
      const Time begin = thread.executor.now();
      at = chase.state == CacheState::hot ? follow_chain(*chase.region, at, loads)
                                          : follow_cold_chain(*chase.region, at, loads);
      spent += thread.executor.now() - begin;
    }
    // The next turn starts at `at`, so the compiler cannot omit any load.
    values->push_back(nanoseconds(spent) / static_cast<double>(loads * rounds));
    co_await yield();
  }
}

struct Persist {
  pmem::Region* region;
  Access access;
  CacheState state;
  Bytes length;
  std::uint64_t writes;
  std::uint32_t repetitions;
};

Task<> time_persist(Thread& thread, Persist persist, Values* values) {
  pmem::Region& region = *persist.region;
  const std::uint64_t lines = persist.length / kCacheLine;
  const bool flushed = persist.state == CacheState::flushed;
  const std::uint64_t writes = flushed ? lines : persist.writes;
  const std::uint64_t rounds = flushed ? std::max<std::uint64_t>(persist.writes / lines, 1) : 1;
  Offsets offsets(Pattern::random, persist.length, kCacheLine);
  std::uint64_t value = 0;
  for (std::uint32_t i = 0; i < persist.repetitions; ++i) {
    Picoseconds spent{};
    for (std::uint64_t round = 0; round < rounds; ++round) {
      if (flushed) evict(region, persist.length);
      const Time begin = thread.executor.now();
      for (std::uint64_t n = 0; n < writes; ++n) {
        const Bytes at = offsets.next();
        ++value;
        if (persist.access == Access::ntstore) {
          region.write_streaming(at, std::as_bytes(std::span(&value, 1)));
        } else {
          region.store(at, value);
          region.flush(at, kWord);
        }
        region.drain();
      }
      spent += thread.executor.now() - begin;
      co_await yield();
    }
    values->push_back(nanoseconds(spent) / static_cast<double>(writes * rounds));
  }
}

// The state of one of the streaming threads, which works on its own part of the region.
struct Streamer {
  pmem::Region* region;
  Stream stream;
  Bytes begin;
  Bytes length;
  Bytes stretch;
  Bytes piece = 0;
  std::uint64_t start = 0;  // the number of its first access
  std::uint64_t taken = 0;  // accesses so far
  std::uint64_t share = 0;  // share of loads that has accumulated, in percent of an access
  std::uint64_t sum = 0;    // sum of the loaded words, so that loads are not omitted
  Offsets offsets{stream.pattern, length, stream.size, start};
  Access access = stream.access;  // the kind of the access that has begun
  Bytes at = 0;                   // offset of its next piece
  Bytes left = 0;                 // bytes left of it; 0 if none has begun

  // Performs accesses of one stretch, or the next piece of one access. Returns the number of bytes.
  Bytes go() {
    if (piece != 0) return next_piece();
    Bytes done = 0;
    do {
      choose();
      sum += access_memory(*region, access, begin + offsets.next(), stream.size);
      ++taken;
      done += stream.size;
    } while (done < stretch);
    return done;
  }

 private:
  void choose() {
    share += stream.load_share;
    access = stream.access;
    if (share >= 100) {
      share -= 100;
      access = Access::load;
    }
  }
  Bytes next_piece() {
    if (left == 0) {
      choose();
      at = begin + offsets.next();
      left = stream.size;
    }
    const Bytes size = std::min(piece, left);
    sum += access_part(*region, access, at, size);
    at += size;
    left -= size;
    if (left == 0) {
      end_access(*region, access);
      ++taken;
    }
    return size;
  }
};

std::vector<Streamer> make_streamers(pmem::Region& region, Stream stream, const Effort& effort) {
  if (stream.access == Access::load) stream.load_share = 100;
  // The number of parts is rounded up, so that the size of a part is a power of two.
  const Bytes part = region.size() / std::bit_ceil(stream.threads);
  std::vector<Streamer> streamers;
  // Each thread begins at another place of its part; otherwise the threads of a model would move
  // from DIMM to DIMM in step.
  std::uint64_t start = 0;
  for (std::uint32_t i = 0; i < stream.threads; ++i) {
    streamers.push_back({&region, stream, part * i, part, effort.stretch, effort.piece, start});
    start = Offsets::following(Pattern::random, start, Bytes{1} << 32) >> 8;
  }
  return streamers;
}

// The least work of a thread from which a bandwidth is computed, since the last accesses of each
// thread compete with fewer others. For long accesses the number of bytes suffices.
constexpr std::uint64_t kFewestAccesses = 64;
constexpr Bytes kEnough = 16 * MiB;

// `shares` gets the bytes that this thread transferred, by repetition.
Task<> time_stream(Thread& thread, Streamer* streamer, Platform::Barrier* barrier,
                   Picoseconds interval, std::vector<Share>* shares) {
  for (Share& share : *shares) {
    co_await barrier->arrive_and_wait();
    const Time begin = thread.executor.now();
    const std::uint64_t before = streamer->taken;
    Bytes done = 0;
    Picoseconds spent{};
    do {
      done += streamer->go();
      co_await yield();
      spent = thread.executor.now() - begin;
    } while (spent < interval || (streamer->taken - before < kFewestAccesses && done < kEnough));
    share = {begin, begin + spent, static_cast<double>(done)};
  }
}

Task<> stream_until(Streamer* streamer, Platform::Barrier* barrier, const std::atomic<bool>* end) {
  co_await barrier->arrive_and_wait();
  while (!end->load(std::memory_order_relaxed)) {
    streamer->go();
    co_await yield();
  }
}

Task<> time_loaded_chase(Thread& thread, Chase chase, Bytes stretch, Platform::Barrier* barrier,
                         std::atomic<bool>* end, Values* values) {
  co_await barrier->arrive_and_wait();
  const std::uint64_t at_once = std::max<std::uint64_t>(stretch / KiB, 1);
  Bytes at = 0;
  for (std::uint32_t i = 0; i < chase.repetitions; ++i) {
    Picoseconds spent{};
    std::uint64_t loads = 0;
    for (; loads < chase.loads; loads += at_once) {
      const Time begin = thread.executor.now();
      at = follow_cold_chain(*chase.region, at, at_once);
      spent += thread.executor.now() - begin;
      co_await yield();
    }
    values->push_back(nanoseconds(spent) / static_cast<double>(loads));
  }
  end->store(true);
}

Task<> count_media(Thread& thread, Streamer streamer, std::uint32_t repetitions, Values* values) {
  // Up to 64 media lines wait in the buffer before and after the measurement, so there are many
  // more writes than that.
  constexpr std::uint64_t kWrites = 16 * pmem::XpBuffer::kLines;
  for (std::uint32_t i = 0; i < repetitions; ++i) {
    for (std::uint64_t n = 0; n < kWrites; ++n) streamer.go();
    const pmem::WriteCounts before = thread.node.pm_writes().total();
    for (std::uint64_t n = 0; n < kWrites; ++n) {
      streamer.go();
      co_await yield();
    }
    pmem::WriteCounts written = thread.node.pm_writes().total();
    written -= before;
    values->push_back(static_cast<double>(written.media_bytes) /
                      static_cast<double>(written.bytes_issued));
  }
}

}  // namespace

Values load_latency(Platform& platform, Medium medium, Pattern pattern, CacheState state,
                    const Effort& effort, MemoryPlace place) {
  std::unique_ptr<pmem::Region> region;
  const Bytes length = state == CacheState::cold ? effort.working_set : kHot;
  if (platform.local_node(0) != nullptr) {
    region = create_region(platform, "probe", medium, length, place);
    write_chain(*region, length, pattern);
  }
  const Chase chase{region.get(), length, state, effort.loads, effort.repetitions};
  return measure_alone(platform, [chase](Thread& thread, Values* values) {
    return time_chase(thread, chase, values);
  });
}

Values persist_latency(Platform& platform, Medium medium, Access access, CacheState state,
                       const Effort& effort, MemoryPlace place) {
  std::unique_ptr<pmem::Region> region;
  const Bytes length = state == CacheState::cold ? effort.working_set : kHot;
  if (platform.local_node(0) != nullptr) {
    region = create_region(platform, "probe", medium, length, place);
  }
  const Persist persist{region.get(), access, state, length, effort.loads, effort.repetitions};
  return measure_alone(platform, [persist](Thread& thread, Values* values) {
    return time_persist(thread, persist, values);
  });
}

Values bandwidth(Platform& platform, Medium medium, Stream stream, const Effort& effort) {
  const bool local = platform.local_node(0) != nullptr;
  std::unique_ptr<pmem::Region> region;
  std::vector<Streamer> streamers;
  std::vector<std::vector<Share>> shares(stream.threads, std::vector<Share>(effort.repetitions));
  const auto barrier = platform.create_barrier(stream.threads);
  if (local) {
    region = create_region(platform, "probe", medium, effort.working_set, stream.place);
    streamers = make_streamers(*region, stream, effort);
  }
  for (std::uint32_t i = 0; i < streamers.size(); ++i) {
    platform.start(
        0, static_cast<fabric::Port>(i + 1), CompletionMode::polling, [&, i](Thread& thread) {
          return time_stream(thread, &streamers[i], barrier.get(), effort.interval, &shares[i]);
        });
  }
  platform.run();
  Values values;
  if (!local) return values;
  for (std::uint32_t i = 0; i < effort.repetitions; ++i) {
    Share together;
    for (const std::vector<Share>& of_thread : shares) together.add(of_thread[i]);
    values.push_back(together.per_nanosecond());  // bytes per nanosecond are GB/s
  }
  return values;
}

Values loaded_latency(Platform& platform, Medium medium, Stream others, const Effort& effort) {
  Values values;
  const bool local = platform.local_node(0) != nullptr;
  std::unique_ptr<pmem::Region> chased;
  std::unique_ptr<pmem::Region> streamed;
  std::vector<Streamer> streamers;
  std::atomic<bool> end = false;
  const auto barrier = platform.create_barrier(others.threads + 1);
  if (local) {
    chased = create_region(platform, "chased", medium, effort.working_set);
    write_chain(*chased, effort.working_set, Pattern::random);
    if (others.threads > 0) {
      streamed = create_region(platform, "streamed", medium, effort.working_set);
      streamers = make_streamers(*streamed, others, effort);
    }
    const Chase chase{chased.get(), effort.working_set, CacheState::cold, effort.loads,
                      effort.repetitions};
    platform.start(0, 1, CompletionMode::polling, [&, chase](Thread& thread) {
      return time_loaded_chase(thread, chase, effort.stretch, barrier.get(), &end, &values);
    });
  }
  for (std::uint32_t i = 0; i < streamers.size(); ++i) {
    platform.start(0, static_cast<fabric::Port>(i + 2), CompletionMode::polling,
                   [&, i](Thread&) { return stream_until(&streamers[i], barrier.get(), &end); });
  }
  platform.run();
  return values;
}

Values write_amplification(Platform& platform, Stream stream, const Effort& effort) {
  std::unique_ptr<pmem::Region> region;
  if (platform.local_node(0) != nullptr) {
    region = create_region(platform, "probe", Medium::pm, effort.working_set);
  }
  return measure_alone(platform, [&](Thread& thread, Values* values) {
    stream.load_share = 0;
    return count_media(thread, {region.get(), stream, 0, effort.working_set, 1}, 1, values);
  });
}

}  // namespace perdura::bench
