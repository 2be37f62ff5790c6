// hstore in memory that a test owns: without a shard, a network or a pool's header.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "systems/mcas/hstore/hstore.h"
#include "tests/systems/bucket_hash/explored_memory.h"

namespace perdura::systems::mcas::test {

using perdura::test::ExploredRegion;
using perdura::test::Image;
using perdura::test::PlainMemory;
using Contents = std::map<std::string, std::string>;

inline constexpr std::uint64_t kTestPool = 7;

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
  shape.engine.heap.first = round_up(RegionAllocator::size(granules), kMediaLine);
  return shape;
}

// Everything happens in it soon.
inline TestShape small_shape() { return shape_of(4, 3, 256, 512, 64); }

inline Key as_key(const std::string& text) { return std::as_bytes(std::span(text)); }

// An engine over a region that outlives it.
class TestEngine {
 public:
  TestEngine(pmem::Region& region, const TestShape& shape)
      : region_(region),
        memory_(region, Flushing::lines),
        regions_(memory_, 0, shape.extent()),
        engine_(memory_, regions_, kTestPool, shape.engine) {}

  Bytes create() {
    regions_.format();
    return engine_.create().value();
  }
  bool recover(Bytes root) {
    const bool undone = regions_.recover();
    engine_.recover(root);
    return undone;
  }

  bool put(const std::string& key, const std::string& value) {
    return put_by([&] { return engine_.put(as_key(key), as_key(value)); });
  }
  // Writes the value where memory is reserved for it first.
  bool put_reserved(const std::string& key, const std::string& value) {
    const std::optional<Place> place = engine_.reserve(value.size());
    if (!place) return false;
    region_.write(place->offset, as_key(value));
    memory_.flush(*place);
    const bool done = put_by([&] { return engine_.put_reserved(as_key(key), *place); });
    if (!done) engine_.release(*place);
    return done;
  }
  bool erase(const std::string& key) { return engine_.erase(as_key(key)); }
  std::optional<std::string> get(const std::string& key) const {
    const std::optional<Place> place = engine_.get(as_key(key));
    if (!place) return std::nullopt;
    return text_at(*place);
  }
  Contents contents() const {
    Contents all;
    engine_.iterate([&](Key key, Place value) {
      all.emplace(std::string(reinterpret_cast<const char*>(key.data()), key.size()),
                  text_at(value));
    });
    return all;
  }
  std::string audit() const {
    const std::string problem = regions_.audit();
    return problem.empty() ? engine_.audit() : problem;
  }

  RegionAllocator& regions() { return regions_; }
  hstore::Hstore& engine() { return engine_; }

 private:
  template <class Put>
  bool put_by(Put put) {
    for (;;) {
      const PutOutcome outcome = put();
      if (outcome != PutOutcome::must_grow) return outcome == PutOutcome::done;
      while (engine_.grow_step()) {
      }
    }
  }
  std::string text_at(Place place) const {
    std::string text(place.length, '\0');
    region_.read(place.offset, std::as_writable_bytes(std::span(text)));
    return text;
  }

  pmem::Region& region_;
  Memory memory_;
  RegionAllocator regions_;
  hstore::Hstore engine_;
};

// A new engine in plain memory.
struct FreshEngine {
  explicit FreshEngine(const TestShape& shape)
      : memory(shape.size()), engine(memory.region(), shape), root(engine.create()) {}
  PlainMemory memory;
  TestEngine engine;
  Bytes root;
};

// Keys and values that are inlined, that take a slot, and that take a range of their own.
inline std::string text_of(std::uint64_t number, Bytes length) {
  std::string text = std::to_string(number) + '.';
  while (text.size() < length) text += static_cast<char>('a' + (number + text.size()) % 26);
  return text.substr(0, std::max<Bytes>(length, std::to_string(number).size() + 1));
}

}  // namespace perdura::systems::mcas::test
