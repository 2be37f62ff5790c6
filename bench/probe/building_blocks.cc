#include "bench/probe/building_blocks.h"

#include <cstring>
#include <memory>

#include "platform/runtime/work.h"

namespace perdura::bench {
namespace {

using Values = std::vector<double>;

struct Buffers {
  std::unique_ptr<pmem::Region> region;
  std::span<std::byte> one;
  std::span<std::byte> other;
};

// Performs one round. Its result must be used, or else the compiler could omit the round.
std::uint64_t go(const Buffers& buffers, Block block, Bytes at, std::uint64_t before) {
  switch (block) {
    case Block::crc32:
      return crc32(static_cast<std::uint32_t>(before), buffers.one);
    case Block::copy:
      copy_bytes(buffers.other, buffers.one);
      asm volatile("" : : : "memory");
      return before;
    case Block::hash:
      return hash64(buffers.one, before);
    case Block::compare:
      asm volatile("" : : : "memory");
      return before + (equal_bytes(buffers.one, buffers.other) ? 1 : 0);
    case Block::store:
      buffers.region->store(at, before + 1);
      return before + 1;
    case Block::flush:
      buffers.region->flush(at, kWord);
      return before;
    case Block::fence:
      buffers.region->drain();
      return before;
  }
  return before;
}

Task<> time_block(Thread& thread, const Buffers* buffers, Block block, Effort effort,
                  Values* values) {
  const std::uint64_t rounds = std::min<std::uint64_t>(effort.loads, 20'000);
  std::uint64_t result = 0;
  for (std::uint32_t i = 0; i < effort.repetitions; ++i) {
    const Time begin = thread.executor.now();
    for (std::uint64_t n = 0; n < rounds; ++n) {
      result = go(*buffers, block, n * kCacheLine % kManyBytes, result);
    }
    values->push_back(static_cast<double>((thread.executor.now() - begin).count()) * 1e-3 /
                      static_cast<double>(rounds));
    co_await yield();
  }
  // The result is stored, so that the compiler cannot omit the rounds.
  buffers->region->store(0, result);
}

}  // namespace

std::string_view to_string(Block block) {
  switch (block) {
    case Block::crc32:
      return "crc32";
    case Block::copy:
      return "copy";
    case Block::hash:
      return "hash";
    case Block::compare:
      return "compare";
    case Block::store:
      return "store";
    case Block::flush:
      return "flush";
    case Block::fence:
      return "fence";
  }
  return "crc32";
}

Values building_block(Platform& platform, Block block, Bytes size, const Effort& effort) {
  Values values;
  Buffers buffers;
  if (Node* const node = platform.local_node(0)) {
    buffers.region = node->create_region("block", 3 * kManyBytes, pmem::Medium::pm);
    std::byte* const data = buffers.region->data();
    std::memset(data, 1, 3 * kManyBytes);
    buffers.one = {data + kManyBytes, size};
    buffers.other = {data + 2 * kManyBytes, size};
    platform.start(0, 1, CompletionMode::polling, [&](Thread& thread) {
      return time_block(thread, &buffers, block, effort, &values);
    });
  }
  platform.run();
  return values;
}

ProbeSet building_block_probes(const Effort& effort) {
  ProbeSet set;
  const auto add = [&](Block block, Bytes size) {
    Setting setting{.probe = "building-block", .operation = std::string(to_string(block))};
    setting.size = size;
    setting.unit = "ns";
    set.probes.push_back(
        {.setting = std::move(setting), .measure = [=](Platform& platform, const Gather&) {
           return building_block(platform, block, size, effort);
         }});
  };
  for (const Block block : {Block::crc32, Block::copy, Block::hash, Block::compare}) {
    for (const Bytes size : {kFewBytes, kManyBytes}) add(block, size);
  }
  for (const Block block : {Block::store, Block::flush, Block::fence}) add(block, kWord);
  return set;
}

}  // namespace perdura::bench
