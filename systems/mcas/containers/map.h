// A hash table in an arena, by linear hashing: each key that is added beyond the number of buckets
// adds one bucket and splits another one, so no transaction has to save more than a bucket's chain.
// A map whose root is zeros is empty.
#pragma once

#include <bit>
#include <optional>
#include <string>
#include <type_traits>

#include "platform/runtime/work.h"
#include "systems/mcas/containers/vector.h"

namespace perdura::systems::mcas::containers {

// Keys are strings, or objects that are equal if their bytes are.
template <class K, class V>
class Map {
  static_assert(std::is_same_v<K, std::string> || std::has_unique_object_representations_v<K>);
  using Buckets = Vector<std::uint64_t>;  // the offset of each bucket's first node; 0: none
  struct Node {
    std::uint64_t next = 0;
    std::uint64_t hash = 0;
    typename Stored<K>::Form key{};
    typename Stored<V>::Form value{};
  };

 public:
  static constexpr Bytes kRootSize = Buckets::kRootSize + kWord;

  // `root`: the offset of the map's root in the arena's roots.
  Map(Arena& arena, Bytes root)
      : arena_(&arena),
        buckets_(arena, root),
        size_at_(arena.root(root + Buckets::kRootSize, kWord)) {}

  std::uint64_t size() const { return arena_->template read<std::uint64_t>(size_at_); }
  std::optional<V> get(const K& key) const {
    const Bytes found = find(key, hash_of(key));
    if (found == 0) return std::nullopt;
    return Stored<V>::value(*arena_, node(found).value);
  }
  // Calls `visit(key, value)` for each item, in no particular order.
  template <class Visit>
  void for_each(Visit visit) const {
    for_each_node([&](std::uint64_t, Bytes, const Node& one) {
      visit(Stored<K>::value(*arena_, one.key), Stored<V>::value(*arena_, one.value));
    });
  }

  // Changes; only within a transaction.
  void put(const K& key, const V& value) {
    const std::uint64_t hash = hash_of(key);
    if (const Bytes found = find(key, hash); found != 0) {
      Stored<V>::release(*arena_, node(found).value);
      arena_->write(found + offsetof(Node, value), Stored<V>::keep(*arena_, value));
      return;
    }
    if (size() == buckets_.size()) add_bucket();
    const std::uint64_t bucket = bucket_of(hash);
    const Node created{buckets_.get(bucket), hash, Stored<K>::keep(*arena_, key),
                       Stored<V>::keep(*arena_, value)};
    const Bytes at = arena_->allocate(sizeof(Node));
    arena_->write(at, created);
    buckets_.set(bucket, at);
    arena_->write(size_at_, size() + 1);
  }
  // Returns false if the key does not exist.
  bool erase(const K& key) {
    const std::uint64_t hash = hash_of(key);
    const std::uint64_t bucket = bucket_of(hash);
    const Bytes found = find(key, hash);
    if (found == 0) return false;
    const Node erased = node(found);
    Bytes previous = 0;
    for (Bytes at = buckets_.get(bucket); at != found; at = node(at).next) previous = at;
    refer(bucket, previous, erased.next);
    Stored<K>::release(*arena_, erased.key);
    Stored<V>::release(*arena_, erased.value);
    arena_->free({found, sizeof(Node)});
    arena_->write(size_at_, size() - 1);
    return true;
  }

  template <class Visit>
  void visit_blocks(Visit visit) const {
    buckets_.visit_blocks(visit);
    for_each_node([&](std::uint64_t, Bytes at, const Node& one) {
      visit(ByteRange{at, sizeof(Node)});
      Stored<K>::visit_blocks(one.key, visit);
      Stored<V>::visit_blocks(one.value, visit);
    });
  }
  // Returns an inconsistency as a phrase; empty if there is none.
  std::string audit() const {
    std::uint64_t count = 0;
    std::string problem;
    for_each_node([&](std::uint64_t bucket, Bytes, const Node& one) {
      ++count;
      const K key = Stored<K>::value(*arena_, one.key);
      if (one.hash != hash_of(key)) problem = "a node of a map has another key's hash";
      if (bucket_of(one.hash) != bucket) problem = "a node of a map is in another bucket";
    });
    return count == size() ? problem : "a map has another number of keys than it counts";
  }

 private:
  static std::uint64_t hash_of(const K& key) {
    if constexpr (std::is_same_v<K, std::string>) {
      return hash64(std::as_bytes(std::span(key)));
    } else {
      return hash64(std::as_bytes(std::span(&key, 1)));
    }
  }
  Node node(Bytes at) const { return arena_->template read<Node>(at); }
  // A bucket that has not been split in the current round is selected by one bit of the hash less
  // than the others.
  std::uint64_t bucket_of(std::uint64_t hash) const {
    const std::uint64_t buckets = buckets_.size();
    if (buckets == 0) return 0;
    const std::uint64_t bucket = hash & (std::bit_ceil(buckets) - 1);
    return bucket < buckets ? bucket : bucket & (std::bit_ceil(buckets) / 2 - 1);
  }
  Bytes find(const K& key, std::uint64_t hash) const {
    if (buckets_.empty()) return 0;
    Bytes at = buckets_.get(bucket_of(hash));
    while (at != 0) {
      const Node one = node(at);
      if (one.hash == hash && Stored<K>::value(*arena_, one.key) == key) return at;
      at = one.next;
    }
    return 0;
  }
  template <class Visit>
  void for_each_node(Visit visit) const {
    for (std::uint64_t bucket = 0; bucket < buckets_.size(); ++bucket) {
      for (Bytes at = buckets_.get(bucket); at != 0;) {
        const Node one = node(at);
        visit(bucket, at, one);
        at = one.next;
      }
    }
  }
  // Makes `to` the successor of the node `previous`, or the first node of the bucket if `previous`
  // is 0.
  void refer(std::uint64_t bucket, Bytes previous, Bytes to) {
    if (previous == 0) {
      buckets_.set(bucket, to);
    } else {
      arena_->write(previous + offsetof(Node, next), to);
    }
  }
  void add_bucket() {
    const std::uint64_t added = buckets_.size();
    buckets_.push_back(0);
    if (added == 0) return;
    const std::uint64_t divided = added - std::bit_floor(added);
    Bytes previous = 0;
    for (Bytes at = buckets_.get(divided); at != 0;) {
      const Node one = node(at);
      if (bucket_of(one.hash) == added) {
        refer(divided, previous, one.next);
        arena_->write(at + offsetof(Node, next), buckets_.get(added));
        buckets_.set(added, at);
      } else {
        previous = at;
      }
      at = one.next;
    }
  }

  Arena* arena_;
  Buckets buckets_;
  Bytes size_at_;
};

}  // namespace perdura::systems::mcas::containers
