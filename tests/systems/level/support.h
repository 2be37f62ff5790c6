// Contents of level hash tables in memory, the search of a client there, and an index that counts
// what it rarely does.
#pragma once

#include <gtest/gtest.h>

#include "systems/level/index.h"
#include "tests/systems/bucket_hash/contents.h"
#include "tests/systems/bucket_hash/explored_memory.h"

namespace perdura::systems::level::test {

using perdura::test::as_text;
using perdura::test::Contents;
using perdura::test::ExploredMemory;
using perdura::test::ExploredRegion;
using perdura::test::Image;
using perdura::test::item_of;
using perdura::test::numbered_key;
using perdura::test::numbered_value;
using perdura::test::PlainMemory;

// All items; a key that is there twice is a failure.
inline Contents contents_of(const Index& index) {
  Contents contents;
  index.for_each([&](const Slot& slot) {
    const bool once =
        contents.emplace(as_text(slot.key_bytes()), as_text(slot.value_bytes())).second;
    EXPECT_TRUE(once) << "key " << as_text(slot.key_bytes()) << " twice";
  });
  return contents;
}

// A put that does not resize, of the only writer.
inline Index::Outcome try_put(Index& index, const Slot& item) {
  Index::Writer alone;
  return index.try_put(item, Hashes::of(item), alone);
}

inline std::optional<std::string> value_in(const Contents& contents, const std::string& key) {
  const auto found = contents.find(key);
  return found == contents.end() ? std::nullopt : std::optional(found->second);
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

struct ClientRead {
  bool torn = false;  // it would read again
  std::optional<std::string> value{};
  int reads = 0;
};

// A get while nothing changes.
inline ClientRead read_as_client(std::span<const std::byte> memory, const Geometry& geometry,
                                 std::uint32_t bottom, const std::string& key) {
  ClientGet get(geometry, bottom, key);
  int reads = 0;
  for (; !get.ended(); ++reads) {
    if (!get.read(memory)) return {true, std::nullopt, reads};
  }
  return {false, get.value(), reads};
}

// The same in memory at rest.
inline std::optional<std::string> find_as_client(std::span<const std::byte> memory,
                                                 const Geometry& geometry, std::uint32_t bottom,
                                                 const std::string& key) {
  const ClientRead read = read_as_client(memory, geometry, bottom, key);
  EXPECT_FALSE(read.torn) << key;
  return read.value;
}

class CountingIndex : public Index {
 public:
  using Index::Index;
  std::uint64_t movements = 0;
  Bytes moved_to = 0;  // the bucket of the last one
  std::uint64_t overwritten = 0;

 protected:
  void move_item(Place from, Place to, const Slot& item, Tag tag) override {
    ++movements;
    moved_to = to.bucket;
    Index::move_item(from, to, item, tag);
  }
  void overwrite_item(Place place, const Slot& old_item, const Slot& item, LogNumber log) override {
    ++overwritten;
    Index::overwrite_item(place, old_item, item, log);
  }
};

}  // namespace perdura::systems::level::test
