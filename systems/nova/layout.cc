#include "systems/nova/layout.h"

#include "platform/runtime/work.h"

namespace perdura::systems::nova {

namespace {

constexpr std::uint32_t kSeed = 0x4E4F5641;

std::uint64_t blocks_for(Bytes bytes) { return (bytes + kBlock - 1) / kBlock; }

}  // namespace

Geometry::Geometry(Bytes size_, std::uint64_t inodes_, Bytes log_page_bytes_)
    : size(size_), blocks(size_ / kBlock), inodes(inodes_), log_page_bytes(log_page_bytes_) {
  std::uint64_t next = kJournalOffset / kBlock + blocks_for(kJournals * kJournalBytes);
  inode_table = next * kBlock;
  next += blocks_for(inodes * sizeof(InodeRecord));
  saved_blocks = next * kBlock;
  saved_inodes = saved_blocks + saved_block_bytes();
  next += blocks_for(saved_block_bytes() + saved_inode_bytes());
  first_block = next;
}

Superblock superblock_of(const Geometry& geometry) {
  Superblock result{.magic = kMagic,
                    .version = kVersion,
                    .size = geometry.size,
                    .inodes = geometry.inodes,
                    .log_page_bytes = geometry.log_page_bytes};
  result.crc = crc32(kSeed, bytes_of(result).subspan(offsetof(Superblock, size)));
  return result;
}

bool is_intact(const Superblock& superblock) {
  return superblock.magic == kMagic && superblock.version == kVersion &&
         superblock.crc == crc32(kSeed, bytes_of(superblock).subspan(offsetof(Superblock, size)));
}

std::uint32_t checksum(const InodeBase& base) {
  return crc32(kSeed, bytes_of(base).subspan(offsetof(InodeBase, mode)));
}

std::uint32_t checksum(std::span<const std::byte> entry, std::uint64_t inode,
                       std::uint64_t generation, Bytes offset) {
  const std::uint64_t identity =
      inode * 0x9E3779B97F4A7C15 + generation * 0xC2B2AE3D27D4EB4F + offset * 0x165667B19E3779F9;
  return crc32(static_cast<std::uint32_t>(identity >> 32),
               entry.subspan(offsetof(EntryHeader, type)));
}

std::uint32_t checksum(const JournalRecord& record) {
  const Bytes length = offsetof(JournalRecord, words) + record.count * sizeof(JournalWord);
  return crc32(kSeed, bytes_of(record).subspan(offsetof(JournalRecord, count),
                                               length - offsetof(JournalRecord, count)));
}

bool is_possible(const Geometry& geometry, const JournalWord& word) {
  if (word.offset < geometry.inode_table ||
      word.offset >= geometry.inode_offset(geometry.inodes + 1)) {
    return false;
  }
  const Bytes in_record = (word.offset - geometry.inode_table) % sizeof(InodeRecord);
  return in_record == kStateWord || in_record == kTailWord || in_record == kParentWord;
}

std::uint64_t clean_mark(std::span<const std::uint64_t> blocks,
                         std::span<const std::uint64_t> inodes) {
  return kClean | crc32(crc32(kSeed, std::as_bytes(blocks)), std::as_bytes(inodes));
}

}  // namespace perdura::systems::nova
