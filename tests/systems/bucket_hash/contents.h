// Numbered items for tests of the hash indexes, and what a table holds, as text.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <map>
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

}  // namespace perdura::test
