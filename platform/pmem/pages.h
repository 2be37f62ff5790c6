// The page size of a memory mapping, for callers that choose it.
#pragma once

#include <cstdint>
#include <string_view>

namespace perdura::pmem {

enum class Pages : std::uint8_t {
  any,    // the kernel decides
  small,  // 4 KiB
  huge,   // 2 MiB
};

constexpr std::string_view to_string(Pages pages) {
  if (pages == Pages::any) return "any";
  return pages == Pages::small ? "small" : "huge";
}

}  // namespace perdura::pmem
