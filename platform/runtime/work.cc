#include "platform/runtime/work.h"

#include <isa-l/crc.h>

namespace perdura {

std::uint32_t crc32(std::uint32_t seed, std::span<const std::byte> data) {
  charge(Work::crc32, data.size());
  return crc32_gzip_refl(seed, reinterpret_cast<const unsigned char*>(data.data()), data.size());
}

}  // namespace perdura
