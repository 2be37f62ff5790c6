// Storage engines in memory that a test owns: without a shard, a network or a pool's header.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "systems/mcas/engines.h"
#include "systems/mcas/hstore_cc/heap_map.h"
#include "tests/systems/bucket_hash/explored_memory.h"

namespace perdura::systems::mcas::test {

using perdura::test::ExploredMemory;
using perdura::test::ExploredRegion;
using perdura::test::Image;
using perdura::test::PlainMemory;
using Contents = std::map<std::string, std::string>;

inline constexpr std::uint64_t kTestPool = 7;

// How parameterized tests name an engine.
inline std::string name_of(const testing::TestParamInfo<EngineKind>& engine) {
  switch (engine.param) {
    case EngineKind::hstore:
      return "hstore";
    case EngineKind::hstore_cc:
      return "hstore_cc";
    default:
      return "mapstore";
  }
}

struct TestShape {
  hstore::Shape engine;
  Bytes granule = 0;
  std::uint64_t granules = 0;

  RegionAllocator::Extent extent() const { return {engine.heap.first, granules, granule}; }
  Bytes size() const { return engine.heap.first + granules * granule; }
};

inline TestShape shape_of(std::uint64_t first_segment, std::uint32_t hops, Bytes heap_region,
                          Bytes granule, std::uint64_t granules,
                          std::uint32_t segments = hstore::kMostSegments) {
  TestShape shape{{{first_segment, hops}, segments, {0, heap_region}}, granule, granules};
  shape.engine.heap_map = round_up(RegionAllocator::size(granules), kCacheLine);
  const Bytes map = hstore_cc::HeapMap::size(granules * granule, heap_region);
  shape.engine.heap.first = round_up(shape.engine.heap_map + map, kMediaLine);
  return shape;
}

// Everything happens in it soon.
inline TestShape small_shape() { return shape_of(4, 3, 256, 512, 64); }

inline Key as_key(const std::string& text) { return std::as_bytes(std::span(text)); }

// An engine over a region that outlives it.
class TestEngine {
 public:
  TestEngine(pmem::Region& region, const TestShape& shape, EngineKind kind = EngineKind::hstore,
             Flushing flushing = Flushing::lines)
      : region_(region),
        memory_(region, flushing),
        regions_(memory_, 0, shape.extent()),
        engine_(make_engine(kind, memory_, regions_, kTestPool, shape.engine)) {}

  Bytes create() {
    regions_.format();
    return engine_->create().value();
  }
  // Whether it has found anything to do.
  bool recover(Bytes root) {
    const bool undone = regions_.recover();
    const Engine::Recovered found = engine_->recover(root);
    return undone || found.stale_hops + found.stale_entries > 0;
  }

  bool put(const std::string& key, const std::string& value) {
    return put_by([&] { return engine_->put(as_key(key), as_key(value)); });
  }
  // Writes the value where memory is reserved for it first.
  bool put_reserved(const std::string& key, const std::string& value) {
    const std::optional<ByteRange> range = engine_->reserve(value.size());
    if (!range) return false;
    region_.write(range->offset, as_key(value));
    memory_.flush(*range);
    const bool done = put_by([&] { return engine_->put_reserved(as_key(key), *range); });
    if (!done) engine_->release(*range);
    return done;
  }
  bool erase(const std::string& key) { return engine_->erase(as_key(key)); }
  std::optional<std::string> get(const std::string& key) const {
    const std::optional<ByteRange> range = engine_->get(as_key(key));
    if (!range) return std::nullopt;
    return text_at(*range);
  }
  Contents contents() const {
    Contents all;
    engine_->iterate([&](Key key, ByteRange value) {
      all.emplace(std::string(reinterpret_cast<const char*>(key.data()), key.size()),
                  text_at(value));
    });
    return all;
  }
  std::string audit() const {
    const std::string problem = regions_.audit();
    return problem.empty() ? engine_->audit() : problem;
  }

  RegionAllocator& regions() { return regions_; }
  Engine& engine() { return *engine_; }
  const hstore::Hstore& hstore() const { return dynamic_cast<const hstore::Hstore&>(*engine_); }

 private:
  template <class Put>
  bool put_by(Put put) {
    for (;;) {
      const PutOutcome outcome = put();
      if (outcome != PutOutcome::must_grow) return outcome == PutOutcome::done;
      while (engine_->grow_step()) {
      }
    }
  }
  std::string text_at(ByteRange range) const {
    std::string text(range.length, '\0');
    region_.read(range.offset, std::as_writable_bytes(std::span(text)));
    return text;
  }

  pmem::Region& region_;
  Memory memory_;
  RegionAllocator regions_;
  std::unique_ptr<Engine> engine_;
};

// A new engine in plain memory.
struct FreshEngine {
  explicit FreshEngine(const TestShape& shape, EngineKind kind = EngineKind::hstore)
      : memory(shape.size()), engine(memory.region(), shape, kind), root(engine.create()) {}
  Image image() const { return {memory.bytes().begin(), memory.bytes().end()}; }
  PlainMemory memory;
  TestEngine engine;
  Bytes root;
};

// Lengths of keys and values of all kinds.
inline constexpr std::array<Bytes, 8> kLengths{0, 3, 16, 17, 64, 100, 700, 5000};

// Keys and values that are inlined, that take a slot, and that take a range of their own.
inline std::string text_of(std::uint64_t number, Bytes length) {
  std::string text = std::to_string(number) + '.';
  while (text.size() < length) text += static_cast<char>('a' + (number + text.size()) % 26);
  return text.substr(0, std::max<Bytes>(length, std::to_string(number).size() + 1));
}

}  // namespace perdura::systems::mcas::test
