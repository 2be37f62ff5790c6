// Fields of the binary data in which firmware and devices describe themselves.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

namespace perdura::methods {

// A field, or 0 if the bytes end before the field does. These fields are little-endian, as are the
// machines that have them.
template <class Value>
Value field_at(std::string_view bytes, std::size_t offset) {
  Value value{};
  if (offset + sizeof value <= bytes.size()) {
    std::memcpy(&value, bytes.data() + offset, sizeof value);
  }
  return value;
}

}  // namespace perdura::methods
