#pragma once

#include <cstddef>
#include <functional>

namespace perdura::fs {

// Combines the hashes of several values, in their order.
template <class... Values>
void add_to_hash(std::size_t& hash, const Values&... values) {
  ((hash = (hash ^ std::hash<Values>()(values)) * 0x9e3779b97f4a7c15 + (hash >> 32)), ...);
}

}  // namespace perdura::fs
