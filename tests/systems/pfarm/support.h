// Items and contents of P-FaRM-KV's tables in memory, and the search of a client there.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "systems/pfarm/index.h"
#include "tests/systems/bucket_hash/explored_memory.h"

namespace perdura::systems::pfarm::test {

using Contents = std::map<std::string, std::string>;

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}
inline std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline Slot item_of(const std::string& key, const std::string& value = {}) {
  return Slot::of(as_bytes(key), as_bytes(value));
}

// 1 to 16 bytes; none is the beginning of another of the same length.
inline std::string numbered_key(std::uint64_t number) {
  std::string key = fmt::format("k{}", number);
  if (number % 3 != 2) key.resize(16, number % 3 == 0 ? '-' : '\0');
  return key;
}
// 0 to 15 bytes, different for each version up to a thousand.
inline std::string numbered_value(std::uint64_t version) {
  std::string value = std::to_string(version);
  value.resize(std::max<std::size_t>(value.size(), version % 16), '.');
  return value;
}

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

struct ClientRead {
  bool torn = false;  // it would read again
  std::optional<std::string> value{};
  std::uint64_t reads = 0;
};

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

// The same in memory at rest.
inline std::optional<std::string> find_as_client(std::span<const std::byte> memory,
                                                 const Geometry& geometry, std::uint32_t level,
                                                 const std::string& key) {
  const ClientRead read = read_as_client(memory, geometry, level, key);
  EXPECT_FALSE(read.torn) << key;
  return read.value;
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

}  // namespace perdura::systems::pfarm::test
