// The size of the pages that memory consists of, where somebody chooses it.
#pragma once

#include <cstdint>
#include <string_view>

namespace perdura::pmem {

enum class Pages : std::uint8_t {
  any,    // as the kernel likes
  small,  // 4 KiB
  huge,   // 2 MiB
};

constexpr std::string_view to_string(Pages pages) {
  if (pages == Pages::any) return "any";
  return pages == Pages::small ? "small" : "huge";
}

}  // namespace perdura::pmem
