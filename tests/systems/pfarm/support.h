// The search of a client in P-FaRM-KV's tables in memory, keys by their homes, and how the tests
// that all hash indexes share see this one.
#pragma once

#include "systems/pfarm/index.h"
#include "systems/pfarm/parameters.h"
#include "tests/systems/bucket_hash/contents.h"
#include "tests/systems/bucket_hash/explored_memory.h"

namespace perdura::systems::pfarm::test {

using perdura::test::as_text;
using perdura::test::ClientRead;
using perdura::test::Contents;
using perdura::test::contents_of;
using perdura::test::ExploredMemory;
using perdura::test::ExploredRegion;
using perdura::test::Image;
using perdura::test::item_of;
using perdura::test::numbered_key;
using perdura::test::numbered_value;
using perdura::test::OneRead;
using perdura::test::PlainMemory;
using perdura::test::value_in;

// What a client reads that knows the table of this level, if nothing changes meanwhile.
inline ClientRead read_as_client(std::span<const std::byte> memory, const Geometry& geometry,
                                 std::uint32_t level, const std::string& key) {
  const Slot wanted = item_of(key);
  ClientRead read;
  for (;; ++level) {
    const Table table = geometry.table(level);
    Search search = search_neighborhood(
        memory.subspan(table.bucket_offset(table.home(wanted)), kNeighborhoodSize), wanted);
    ++read.reads;
    bool sealed = search.sealed;
    while (!search.torn && !search.found && search.link != 0) {
      search = search_block(
          memory.subspan(table.bucket_offset(table.block(search.link).value()), kBucketSize),
          wanted);
      ++read.reads;
      sealed |= search.sealed;
    }
    read.torn = search.torn;
    if (search.torn) return read;
    if (search.found) read.value = as_text(search.found->value_bytes());
    if (search.found || !sealed) return read;
  }
}

// Different keys of one home of a table.
class KeysOf {
 public:
  explicit KeysOf(const Table& table) : table_(table) {}
  std::string next(std::uint64_t home) {
    std::vector<std::string>& found = found_[home];
    while (found.empty()) {
      const std::string key = numbered_key(number_++);
      found_[table_.home(item_of(key))].push_back(key);
    }
    std::string key = found.back();
    found.pop_back();
    return key;
  }

 private:
  Table table_;
  std::uint64_t number_ = 0;
  std::map<std::uint64_t, std::vector<std::string>> found_;
};

struct PFarmHash {
  using Index = pfarm::Index;
  using Geometry = pfarm::Geometry;
  using Parameters = pfarm::Parameters;

  // What is rare in a history, counted.
  static std::map<std::string, std::uint64_t> rare(const Index& index) {
    return {{"movements", index.movements()}, {"overflow blocks", index.blocks_used()}};
  }
  // How often it was resized, and what a restart finds again besides.
  static std::uint32_t table(const Index& index) { return index.level(); }
  static std::uint64_t extra_room(const Index& index) { return index.blocks_used(); }
  static constexpr bool kHasExtraRoom = true;
  static constexpr bool kUpdatesNeedRoom = false;
  static constexpr Flushing kNoFlushing = Flushing::none;
  static constexpr std::uint64_t kFencesOfThreeWrites = 12;  // insert, update, delete

  static Index::Outcome try_put(Index& index, const Slot& item) { return index.try_put(item); }
  static ClientRead read_as_client(std::span<const std::byte> memory, const Geometry& geometry,
                                   std::uint32_t known, const std::string& key) {
    return test::read_as_client(memory, geometry, known, key);
  }
  static OneRead one_read(const Index& index, std::span<const std::byte>, const std::string& key) {
    const Table table = index.table();
    return {table.bucket_offset(table.home(item_of(key))), kNeighborhoodSize,
            [key](std::span<const std::byte> bytes) {
              const Search search = search_neighborhood(bytes, item_of(key));
              ClientRead read{search.torn, std::nullopt, 1};
              if (search.found) read.value = as_text(search.found->value_bytes());
              return read;
            }};
  }
  // Recovery computes them all.
  static void clear_checks(Image& image, const Geometry& geometry) {
    for (std::uint32_t level = 0; level <= geometry.resizes; ++level) {
      const Table table = geometry.table(level);
      for (std::uint64_t bucket = 0; bucket < table.all_buckets(); ++bucket) {
        std::memset(&image[table.bucket_offset(bucket) + kCheckOffset], 0, kWord);
      }
    }
  }
  static void clear_undurable(Image& image, const Geometry& geometry) {
    clear_checks(image, geometry);
  }

  // --- of exploring histories: see explored_index.h
  static constexpr bool kSettlesEachStep = true;
  static constexpr bool kRecoversEachCheck = false;
  static std::uint64_t keys(const Index&) { return 24; }
  static constexpr std::uint64_t kErasesOneIn = 5;

  static std::string describe(const Geometry& geometry) {
    return fmt::format("{} homes, {} % overflow, {} resizes", geometry.homes,
                       geometry.overflow_percent, geometry.resizes);
  }
  static std::vector<Geometry> geometries() {
    std::vector<Geometry> list;
    for (const std::uint32_t homes : {1U, 2U, 3U, 10U, 33U}) {
      for (const std::uint32_t percent : {0U, 5U, 50U, 100U}) {
        for (const std::uint32_t resizes : {0U, 1U, 4U}) {
          list.push_back({homes, percent, resizes, homes});
        }
      }
    }
    return list;
  }
  // Of a history in a table of these: so many keys at least, and up to so many more.
  static std::pair<std::uint64_t, std::uint64_t> map_keys(const Geometry& geometry) {
    return {10, geometry.homes * 20};
  }
  static constexpr std::uint64_t kMapRounds = 1;
  static std::vector<Geometry> full_geometries() { return {{2, 0, 0}, {2, 100, 0}}; }
  static Geometry resizing_geometry() { return {6, 50, 2}; }
  static Geometry fixed_geometry() { return {3, 0, 0}; }
};

}  // namespace perdura::systems::pfarm::test
