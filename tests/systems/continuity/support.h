// Items and contents of continuity hash tables in memory, and the search of a client there.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "systems/continuity/index.h"
#include "tests/systems/bucket_hash/explored_memory.h"

namespace perdura::systems::continuity::test {

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
};

// What a client reads that knows the table of this level, if nothing changes meanwhile.
inline ClientRead read_as_client(std::span<const std::byte> memory, const Geometry& geometry,
                                 std::uint32_t level, const std::string& key) {
  const Slot wanted = item_of(key);
  for (;; ++level) {
    const Table table = geometry.table(level);
    const Home home = table.home(wanted);
    Search search = search_segment(memory.subspan(table.segment_offset(home), table.segment_size()),
                                   table, home.odd, wanted);
    const Indicator indicator = search.indicator;
    const auto group = group_of(indicator);
    if (!search.torn && !search.found && group) {
      search = search_group(memory.subspan(table.group_offset(*group), table.group_size()), table,
                            indicator, wanted);
    }
    if (search.torn) return {true, std::nullopt};
    if (search.found) return {false, as_text(search.found->value_bytes())};
    if ((indicator & kSealed) == 0) return {};
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

}  // namespace perdura::systems::continuity::test
