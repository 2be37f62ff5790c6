#include "systems/orion/mds/superblock.h"

#include <cstddef>

#include "platform/runtime/work.h"
#include "systems/nova/layout.h"

namespace perdura::systems::orion {

namespace {

constexpr std::uint32_t kSeed = 0x4F52494F;

std::uint32_t checksum_of(const OrionSuperblock& superblock) {
  return crc32(kSeed, nova::bytes_of(superblock).subspan(offsetof(OrionSuperblock, groups)));
}

}  // namespace

OrionSuperblock superblock_of(const Parameters& parameters) {
  OrionSuperblock result{.magic = kOrionMagic,
                         .groups = parameters.groups,
                         .pages = parameters.pages,
                         .chunk_pages = parameters.chunk_pages};
  result.crc = checksum_of(result);
  return result;
}

bool is_intact(const OrionSuperblock& superblock) {
  return superblock.magic == kOrionMagic && superblock.crc == checksum_of(superblock);
}

}  // namespace perdura::systems::orion
