// Fields of what firmware and devices describe themselves with.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

namespace perdura::persistence {

// A field, or 0 where the bytes end before it does. Such fields are little-endian, as are the
// machines that have them.
template <class Value>
Value field_at(std::string_view bytes, std::size_t offset) {
  Value value{};
  if (offset + sizeof value <= bytes.size()) {
    std::memcpy(&value, bytes.data() + offset, sizeof value);
  }
  return value;
}

}  // namespace perdura::persistence
