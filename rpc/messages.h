// Messages are plain structures at the beginning of a buffer.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace perdura::rpc {

// Missing bytes of a message that is too short read as zeros.
template <class T>
requires std::is_trivially_copyable_v<T> T read_message(std::span<const std::byte> bytes) {
  T message{};
  if (bytes.size() >= sizeof message) std::memcpy(&message, bytes.data(), sizeof message);
  return message;
}

template <class T>
requires std::is_trivially_copyable_v<T>
void write_message(std::span<std::byte> into, const T& message) {
  std::memcpy(into.data(), &message, sizeof message);
}

template <class T>
requires std::is_trivially_copyable_v<T> std::span<const std::byte> bytes_of(const T& message) {
  return std::as_bytes(std::span(&message, 1));
}

}  // namespace perdura::rpc
