// The search of a client in level hash tables in memory, and how the tests that all hash indexes
// share see this one.
#pragma once

#include "systems/level/index.h"
#include "systems/level/parameters.h"
#include "tests/systems/bucket_hash/contents.h"
#include "tests/systems/bucket_hash/explored_memory.h"

namespace perdura::systems::level::test {

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

// A put that does not resize, of the only writer.
inline Index::Outcome try_put(Index& index, const Slot& item) {
  Index::Writer alone;
  return index.try_put(item, Hashes::of(item), alone);
}

// A get, READ by READ, of a client that knows the table with this bottom level.
class ClientGet {
 public:
  ClientGet(const Geometry& geometry, std::uint32_t bottom, const std::string& key)
      : geometry_(&geometry),
        key_(item_of(key)),
        hashes_(Hashes::of(key_)),
        bottom_(bottom),
        level_(bottom + 1) {}

  bool ended() const { return ended_; }
  const std::optional<std::string>& value() const { return value_; }
  // What the rest of the get depends on.
  auto position() const { return std::tuple(level_, side_, sealed_); }

  // The next READ, of memory as it is now; false if it is torn, and so must be repeated.
  bool read(std::span<const std::byte> memory) {
    const Level level = geometry_->level(level_);
    const Search search = search_bucket(
        memory.subspan(level.candidate_offset(hashes_, side_), kBucketSize), key_, hashes_.tag());
    if (search.torn) return false;
    if (search.found) value_ = as_text(search.found->value_bytes());
    ended_ = search.found.has_value();
    sealed_ |= search.sealed;
    if (!ended_) advance();
    return true;
  }

 private:
  void advance() {
    if (side_ == Side::first) {
      side_ = Side::second;
      return;
    }
    side_ = Side::first;
    if (std::exchange(sealed_, false)) {
      level_ += 2;
    } else if ((level_ - bottom_) % 2 == 1) {
      level_ = bottom_;
    } else {
      ended_ = true;
    }
  }

  const Geometry* geometry_;
  Slot key_;
  Hashes hashes_;
  std::uint32_t bottom_;
  std::uint32_t level_;
  Side side_ = Side::first;
  bool sealed_ = false;  // a bucket of this level
  bool ended_ = false;
  std::optional<std::string> value_;
};

// A get while nothing changes.
inline ClientRead read_as_client(std::span<const std::byte> memory, const Geometry& geometry,
                                 std::uint32_t bottom, const std::string& key) {
  ClientGet get(geometry, bottom, key);
  std::uint64_t reads = 0;
  for (; !get.ended(); ++reads) {
    if (!get.read(memory)) return {true, std::nullopt, reads};
  }
  return {false, get.value(), reads};
}

struct LevelHash {
  using Index = level::Index;
  using Geometry = level::Geometry;
  using Parameters = level::Parameters;

  // What is rare in a history, counted.
  static std::map<std::string, std::uint64_t> rare(const Index& index) {
    return {{"movements", index.movements()}, {"overwritten slots", index.overwrites()}};
  }
  // How often it was resized, and what a restart finds again besides.
  static std::uint32_t table(const Index& index) { return index.bottom(); }
  static std::uint64_t extra_room(const Index&) { return 0; }
  static constexpr bool kHasExtraRoom = false;
  static constexpr bool kUpdatesNeedRoom = false;
  static constexpr Flushing kNoFlushing = Flushing::none;
  static constexpr std::uint64_t kFencesOfThreeWrites = 5;  // insert, update, delete

  static Index::Outcome try_put(Index& index, const Slot& item) {
    return test::try_put(index, item);
  }
  static ClientRead read_as_client(std::span<const std::byte> memory, const Geometry& geometry,
                                   std::uint32_t known, const std::string& key) {
    return test::read_as_client(memory, geometry, known, key);
  }
  // Of the candidate in the top level where the key is.
  static OneRead one_read(const Index& index, std::span<const std::byte> memory,
                          const std::string& key) {
    const Level top = index.geometry().level(index.bottom() + 1);
    const Hashes hashes = Hashes::of(item_of(key));
    const auto search_in = [key, hashes](std::span<const std::byte> bytes) {
      const Search search = search_bucket(bytes, item_of(key), hashes.tag());
      ClientRead read{search.torn, std::nullopt, 1};
      if (search.found) read.value = as_text(search.found->value_bytes());
      return read;
    };
    Bytes offset = top.candidate_offset(hashes, Side::first);
    if (!search_in(memory.subspan(offset, kBucketSize)).value) {
      offset = top.candidate_offset(hashes, Side::second);
    }
    return {offset, kBucketSize, search_in};
  }
  // Recovery computes them all.
  static void clear_checks(Image& image, const Geometry& geometry) {
    for (std::uint32_t number = 0; number < geometry.levels(); ++number) {
      const Level level = geometry.level(number);
      for (std::uint64_t bucket = 0; bucket < level.buckets; ++bucket) {
        std::memset(&image[level.bucket_offset(bucket) + kCheckOffset], 0, kWord);
      }
    }
  }
  // Besides checks: seals.
  static void clear_undurable(Image& image, const Geometry& geometry) {
    clear_checks(image, geometry);
    for (std::uint32_t number = 0; number < geometry.levels(); ++number) {
      const Level level = geometry.level(number);
      for (std::uint64_t bucket = 0; bucket < level.buckets; ++bucket) {
        std::byte* at = &image[level.bucket_offset(bucket) + kTokensOffset];
        Tokens tokens;
        std::memcpy(&tokens, at, kWord);
        tokens &= ~kSealed;
        std::memcpy(at, &tokens, kWord);
      }
    }
  }

  // --- of exploring histories: see explored_index.h
  static constexpr bool kSettlesEachStep = false;
  static constexpr bool kRecoversEachCheck = true;
  // More than there are slots.
  static std::uint64_t keys(const Index& index) { return index.slots() * 5 / 4; }
  static constexpr std::uint64_t kErasesOneIn = 10;

  static std::string describe(const Geometry& geometry) {
    return fmt::format("{} buckets, {} resizes", geometry.buckets, geometry.resizes);
  }
  static std::vector<Geometry> geometries() {
    return {{2, 0}, {2, 1}, {2, 5}, {4, 0}, {6, 2}, {20, 0}, {20, 3, 3}};
  }
  // Of a history in a table of these: so many keys at least, and up to so many more.
  static std::pair<std::uint64_t, std::uint64_t> map_keys(const Geometry& geometry) {
    return {12 * geometry.buckets, geometry.buckets * 30};
  }
  static constexpr std::uint64_t kMapRounds = 4;
  static std::vector<Geometry> full_geometries() { return {{2, 0}}; }
  static Geometry resizing_geometry() { return {6, 2}; }
  static Geometry fixed_geometry() { return {2, 0}; }
};

}  // namespace perdura::systems::level::test
