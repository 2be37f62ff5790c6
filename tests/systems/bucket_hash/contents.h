// Numbered items for tests of the hash indexes, and what a table holds and a client reads, as text.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "systems/bucket_hash/slot.h"

namespace perdura::test {

using Contents = std::map<std::string, std::string>;

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}
inline std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline systems::bucket_hash::Slot item_of(const std::string& key, const std::string& value = {}) {
  return systems::bucket_hash::Slot::of(as_bytes(key), as_bytes(value));
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
template <class Index>
Contents contents_of(const Index& index) {
  Contents contents;
  index.for_each([&](const systems::bucket_hash::Slot& slot) {
    const bool once =
        contents.emplace(as_text(slot.key_bytes()), as_text(slot.value_bytes())).second;
    EXPECT_TRUE(once) << "key " << as_text(slot.key_bytes()) << " twice";
  });
  return contents;
}

inline std::optional<std::string> value_in(const Contents& contents, const std::string& key) {
  const auto found = contents.find(key);
  return found == contents.end() ? std::nullopt : std::optional(found->second);
}

// A get while nothing changes.
struct ClientRead {
  bool torn = false;  // it would read again
  std::optional<std::string> value{};
  std::uint64_t reads = 0;
};

// One of its READs, of memory as it is then or a mixture of two moments.
struct OneRead {
  Bytes offset = 0;
  Bytes length = 0;
  std::function<ClientRead(std::span<const std::byte>)> search{};  // of what was read
};

}  // namespace perdura::test
