// The search of a client in continuity hash tables in memory, and how the tests that all hash
// indexes share see this one.
#pragma once

#include "systems/continuity/index.h"
#include "systems/continuity/parameters.h"
#include "tests/systems/bucket_hash/contents.h"
#include "tests/systems/bucket_hash/explored_memory.h"

namespace perdura::systems::continuity::test {

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
    const Home home = table.home(wanted);
    ++read.reads;
    Search search = search_segment(memory.subspan(table.segment_offset(home), table.segment_size()),
                                   table, home.odd, wanted);
    const Indicator indicator = search.indicator;
    const auto group = group_of(indicator);
    if (!search.torn && !search.found && group) {
      ++read.reads;
      search = search_group(memory.subspan(table.group_offset(*group), table.group_size()), table,
                            search, wanted);
    }
    read.torn = search.torn;
    if (search.torn) return read;
    if (search.found) read.value = as_text(search.found->value_bytes());
    if (search.found || (indicator & kSealed) == 0) return read;
  }
}

struct ContinuityHash {
  using Index = continuity::Index;
  using Geometry = continuity::Geometry;
  using Parameters = continuity::Parameters;

  // What is rare in a history, counted.
  static std::map<std::string, std::uint64_t> rare(const Index& index) {
    return {{"groups", index.groups_used()}};
  }
  // How often it was resized, and what a restart finds again besides.
  static std::uint32_t table(const Index& index) { return index.level(); }
  static std::uint64_t extra_room(const Index& index) { return index.groups_used(); }
  static constexpr bool kHasExtraRoom = true;
  static constexpr bool kUpdatesNeedRoom = true;
  static constexpr Flushing kNoFlushing = Flushing::none;
  static constexpr std::uint64_t kFencesOfThreeWrites = 5;  // insert, update, delete

  static Index::Outcome try_put(Index& index, const Slot& item) { return index.try_put(item); }
  static ClientRead read_as_client(std::span<const std::byte> memory, const Geometry& geometry,
                                   std::uint32_t known, const std::string& key) {
    return test::read_as_client(memory, geometry, known, key);
  }
  static OneRead one_read(const Index& index, std::span<const std::byte>, const std::string& key) {
    const Table table = index.table();
    const Home home = table.home(item_of(key));
    return {table.segment_offset(home), table.segment_size(),
            [table, home, key](std::span<const std::byte> bytes) {
              const Search search = search_segment(bytes, table, home.odd, item_of(key));
              ClientRead read{search.torn, std::nullopt, 1};
              if (search.found) read.value = as_text(search.found->value_bytes());
              return read;
            }};
  }
  // Recovery computes them all.
  static void clear_checks(Image& image, const Geometry& geometry) {
    for (std::uint32_t level = 0; level <= geometry.resizes; ++level) {
      const Table table = geometry.table(level);
      for (std::uint64_t pair = 0; pair < table.pairs; ++pair) {
        std::memset(&image[table.header_offset(pair) + kWord], 0, kHeaderSize - kWord);
      }
      for (std::uint64_t group = 0; group < table.groups; ++group) {
        std::memset(&image[table.group_offset(group)], 0, kWord);
      }
    }
  }
  // Besides checks: seals.
  static void clear_undurable(Image& image, const Geometry& geometry) {
    clear_checks(image, geometry);
    for (std::uint32_t level = 0; level <= geometry.resizes; ++level) {
      const Table table = geometry.table(level);
      for (std::uint64_t pair = 0; pair < table.pairs; ++pair) {
        std::byte* at = &image[table.header_offset(pair) + kIndicatorOffset];
        Indicator indicator;
        std::memcpy(&indicator, at, kWord);
        indicator &= ~kSealed;
        std::memcpy(at, &indicator, kWord);
      }
    }
  }

  // --- of exploring histories: see explored_index.h
  static constexpr bool kSettlesEachStep = false;
  static constexpr bool kRecoversEachCheck = true;
  static std::uint64_t keys(const Index&) { return 24; }
  static constexpr std::uint64_t kErasesOneIn = 5;

  static std::string describe(const Geometry& geometry) {
    return fmt::format("{} pairs, {} SBuckets, {} after a resize, {} % added, {} resizes",
                       geometry.pairs, geometry.sbuckets, geometry.resized_sbuckets,
                       geometry.added_percent, geometry.resizes);
  }
  static std::vector<Geometry> geometries() {
    std::vector<Geometry> list;
    for (const std::uint64_t pairs : {1U, 3U, 10U}) {
      for (std::uint32_t sbuckets = 1; sbuckets <= kMaxSBuckets; ++sbuckets) {
        for (const std::uint32_t percent : {0U, 5U, 10U, 100U}) {
          for (const std::uint32_t resizes : {0U, 1U, 4U}) {
            list.push_back({pairs, sbuckets, percent, resizes});
            if (resizes > 0 && sbuckets < kMaxSBuckets) {
              list.push_back({pairs, sbuckets, percent, resizes, kMaxSBuckets});
            }
          }
        }
      }
    }
    return list;
  }
  // Of a history in a table of these: so many keys at least, and up to so many more.
  static std::pair<std::uint64_t, std::uint64_t> map_keys(const Geometry& geometry) {
    return {20, geometry.pairs * 60};
  }
  static constexpr std::uint64_t kMapRounds = 1;
  static std::vector<Geometry> full_geometries() { return {{1, 1, 0, 0}}; }
  static Geometry resizing_geometry() { return {4, 1, 50, 2}; }
  static Geometry fixed_geometry() { return {1, 1, 0, 0}; }
};

}  // namespace perdura::systems::continuity::test
