// What the hash indexes have in common: each behaves like a map through any number of resizes, on
// the server as for clients that know it or one of its predecessors. A `Hash` says how an index is
// used here, as in its folder's support.h, which instantiates these tests for it.
#pragma once

#include <gtest/gtest.h>

#include <random>

#include "systems/bucket_hash/readers.h"
#include "systems/flushing.h"
#include "tests/support/seed.h"
#include "tests/systems/bucket_hash/index_support.h"

namespace perdura::test {

template <class Hash>
class HashIndex : public testing::Test {};
TYPED_TEST_SUITE_P(HashIndex);

using systems::bucket_hash::Slot;

// What is found in memory at rest.
template <class Hash>
std::optional<std::string> find_as_client(std::span<const std::byte> memory,
                                          const typename Hash::Geometry& geometry,
                                          std::uint32_t known, const std::string& key) {
  const ClientRead read = Hash::read_as_client(memory, geometry, known, key);
  EXPECT_FALSE(read.torn) << key;
  return read.value;
}

template <class Hash>
void expect_holds(const typename Hash::Index& index, std::span<const std::byte> memory,
                  const Contents& model, std::uint64_t keys) {
  EXPECT_EQ(contents_of(index), model);
  EXPECT_EQ(index.items(), model.size());
  for (std::uint64_t number = 0; number < keys; ++number) {
    const std::string key = numbered_key(number);
    for (std::uint32_t known = 0; known <= Hash::table(index); ++known) {
      ASSERT_EQ(find_as_client<Hash>(memory, index.geometry(), known, key), value_in(model, key))
          << key;
    }
  }
}

TYPED_TEST_P(HashIndex, BehavesLikeAMap) {
  using Hash = TypeParam;
  std::uint64_t refused = 0;
  std::uint64_t grown = 0;
  std::map<std::string, std::uint64_t> rare;
  const auto geometries = Hash::geometries();
  const std::uint64_t first_seed = perdura::test::random_seed();
  for (std::size_t i = 0; i < Hash::kMapRounds * geometries.size(); ++i) {
    const auto& geometry = geometries[i % geometries.size()];
    const std::uint64_t seed = first_seed + i;
    SCOPED_TRACE(fmt::format("{}, seed {}", Hash::describe(geometry), seed));
    std::mt19937_64 random(seed);
    PlainMemory memory(geometry.size());
    typename Hash::Index index(memory.region(), 0, geometry);
    Contents model;
    const auto [least_keys, more_keys] = Hash::map_keys(geometry);
    const std::uint64_t keys = least_keys + random() % more_keys;
    for (int operation = 0; operation < 4000; ++operation) {
      const std::string key = numbered_key(random() % keys);
      const std::string value = numbered_value(random() % 1000);
      const bool known = model.contains(key);
      const auto found = index.find(item_of(key));
      ASSERT_EQ(found.has_value(), known);
      if (found) {
        ASSERT_EQ(as_text(found->value_bytes()), model[key]);
      }
      if (random() % 5 == 0) {
        ASSERT_EQ(index.erase(item_of(key)).has_value(), known);
        model.erase(key);
        continue;
      }
      const std::uint32_t table = Hash::table(index);
      const kv::Result<void> put = index.put(item_of(key, value));
      grown += Hash::table(index) - table;
      if (put) {
        model[key] = value;
      } else {
        ASSERT_EQ(put.error(), kv::Error::out_of_space);
        ASSERT_EQ(Hash::table(index), geometry.resizes);
        ASSERT_TRUE(!known || Hash::kUpdatesNeedRoom);
        ++refused;
      }
    }
    for (const auto& [name, count] : Hash::rare(index)) rare[name] += count;
    expect_holds<Hash>(index, memory.bytes(), model, keys);
    const std::uint32_t table = Hash::table(index);
    const std::uint64_t extra_room = Hash::extra_room(index);
    typename Hash::Index again(memory.region(), 0, geometry);
    again.recover();
    EXPECT_EQ(Hash::table(again), table);
    EXPECT_EQ(Hash::extra_room(again), extra_room);
    expect_holds<Hash>(again, memory.bytes(), model, keys);
  }
  EXPECT_GT(refused, 0U);
  EXPECT_GT(grown, 0U);
  for (const auto& [name, count] : rare) EXPECT_GT(count, 0U) << name;
}

TYPED_TEST_P(HashIndex, ARefusedPutChangesNothing) {
  using Hash = TypeParam;
  for (const auto& geometry : Hash::full_geometries()) {
    PlainMemory memory(geometry.size());
    typename Hash::Index index(memory.region(), 0, geometry);
    std::uint64_t refused = 0;
    for (std::uint64_t i = 0; i < 400; ++i) {
      const Image before = image_of(memory);
      if (index.put(item_of(numbered_key(i % 40), numbered_value(i)))) continue;
      ++refused;
      ASSERT_EQ(image_of(memory), before);
    }
    EXPECT_GT(refused, 0U);
  }
}

// Whatever step a resize is at, a client with an old table and a server find everything.
TYPED_TEST_P(HashIndex, NothingIsMissedDuringAResize) {
  using Hash = TypeParam;
  const auto geometry = Hash::resizing_geometry();
  PlainMemory memory(geometry.size());
  typename Hash::Index index(memory.region(), 0, geometry);
  Contents model;
  std::uint64_t number = 0;
  for (std::uint32_t resize = 0; resize < geometry.resizes; ++resize) {
    for (;; ++number) {
      const std::string key = numbered_key(number);
      const Slot item = item_of(key, numbered_value(number));
      if (Hash::try_put(index, item) != Hash::Index::Outcome::done) break;
      model[key] = numbered_value(number);
    }
    if (Hash::kHasExtraRoom) {
      EXPECT_GT(Hash::extra_room(index), 0U);
    }
    index.begin_resize();
    do {
      for (std::uint32_t known = 0; known <= resize; ++known) {
        for (const auto& [key, value] : model) {
          ASSERT_EQ(find_as_client<Hash>(memory.bytes(), geometry, known, key), value);
        }
        ASSERT_FALSE(find_as_client<Hash>(memory.bytes(), geometry, known, numbered_key(number)));
      }
      for (const auto& [key, value] : model) {
        const auto found = index.find(item_of(key));
        ASSERT_TRUE(found);
        ASSERT_EQ(as_text(found->value_bytes()), value);
      }
    } while (index.resize_step());
    EXPECT_EQ(Hash::table(index), resize + 1);
    expect_holds<Hash>(index, memory.bytes(), model, number);
  }
}

// Any word of what a client reads may be from an earlier or a later moment: it reads again, or
// finds what was there.
TYPED_TEST_P(HashIndex, AReadOfWordsFromTwoMomentsIsNoticed) {
  using Hash = TypeParam;
  const auto geometry = Hash::fixed_geometry();
  PlainMemory memory(geometry.size());
  typename Hash::Index index(memory.region(), 0, geometry);
  std::mt19937_64 random(1);
  const std::string key = numbered_key(0);
  ASSERT_TRUE(index.put(item_of(key, "first")));
  const OneRead read = Hash::one_read(index, memory.bytes(), key);
  const auto search = [&](const Image& image) {
    return read.search(std::span(image).subspan(read.offset, read.length));
  };
  // Others come and go in the same buckets, which are full now and then.
  std::vector<Image> moments;
  std::uint64_t updated = 0;
  for (std::uint64_t i = 0; i < 80; ++i) {
    const Slot other =
        item_of(numbered_key(1 + random() % (index.slots() * 5 / 6)), numbered_value(i));
    if (i % 3 == 0) (void)index.erase(other);
    if (i % 3 != 0) (void)index.put(other);
    if (i % 4 == 0 && index.put(item_of(key, numbered_value(i)))) ++updated;
    moments.push_back(image_of(memory));
    if (!search(moments.back()).value) moments.pop_back();  // it was moved
  }
  ASSERT_GT(moments.size(), 40U);
  EXPECT_GT(updated, 8U);
  std::uint64_t torn = 0;
  for (std::size_t one = 0; one < moments.size(); ++one) {
    for (std::size_t other = one; other < moments.size(); ++other) {
      for (int mix = 0; mix < 20; ++mix) {
        Image image = moments[one];
        for (Bytes word = read.offset; word < read.offset + read.length; word += kWord) {
          if (random() % 2 == 0) std::memcpy(&image[word], &moments[other][word], kWord);
        }
        const ClientRead found = search(image);
        if (found.torn) {
          ++torn;
          continue;
        }
        const bool as_before = found.value == search(moments[one]).value;
        const bool as_after = found.value == search(moments[other]).value;
        ASSERT_TRUE(as_before || as_after);
      }
    }
  }
  EXPECT_GT(torn, 1000U);
}

// Where caches are in the persistence domain, nothing is flushed.
TYPED_TEST_P(HashIndex, FlushesNothingIfCachesPersist) {
  using Hash = TypeParam;
  const auto geometry = Hash::fixed_geometry();
  PlainMemory memory(geometry.size());
  typename Hash::Index index(memory.region(), 0, geometry, Hash::kNoFlushing);
  const pmem::WriteCounts writes = writes_of([&] {
    EXPECT_TRUE(index.put(item_of("key", "value")));
    EXPECT_TRUE(index.put(item_of("key", "other")));
    EXPECT_TRUE(index.erase(item_of("key")));
  });
  EXPECT_EQ(writes.flushes, 0U);
  EXPECT_EQ(writes.fences, Hash::kFencesOfThreeWrites);
}

// Local mode, and then a server of what it left.
TYPED_TEST_P(HashIndex, WhatWasWrittenWithoutReadersIsReadAfterARestart) {
  using Hash = TypeParam;
  const auto geometry = Hash::resizing_geometry();
  PlainMemory memory(geometry.size());
  typename Hash::Index index(memory.region(), 0, geometry, systems::Flushing::lines,
                             systems::bucket_hash::Readers::none);
  Contents model;
  std::uint64_t number = 0;
  for (; Hash::table(index) < geometry.resizes; ++number) {
    const std::string key = numbered_key(number);
    ASSERT_TRUE(index.put(item_of(key, numbered_value(number))));
    model[key] = numbered_value(number);
    const std::string earlier = numbered_key(number / 2);
    if (number % 5 == 0) {
      ASSERT_EQ(index.erase(item_of(earlier)).has_value(), model.erase(earlier) != 0);
    } else if (number % 5 == 1 && index.put(item_of(earlier, "updated"))) {
      model[earlier] = "updated";
    }
  }
  typename Hash::Index served(memory.region(), 0, geometry);
  served.recover();
  EXPECT_EQ(contents_of(served), model);
  // Nobody knows an older table, as no reader outlives the server.
  for (std::uint64_t key = 0; key < number; ++key) {
    ASSERT_EQ(
        find_as_client<Hash>(memory.bytes(), geometry, Hash::table(served), numbered_key(key)),
        value_in(model, numbered_key(key)));
  }
}

TYPED_TEST_P(HashIndex, NoneOfAMillionIsLost) { EXPECT_EQ(wrong_of_a_million<TypeParam>(), 0U); }

REGISTER_TYPED_TEST_SUITE_P(HashIndex, BehavesLikeAMap, ARefusedPutChangesNothing,
                            NothingIsMissedDuringAResize, AReadOfWordsFromTwoMomentsIsNoticed,
                            FlushesNothingIfCachesPersist,
                            WhatWasWrittenWithoutReadersIsReadAfterARestart, NoneOfAMillionIsLost);

}  // namespace perdura::test
