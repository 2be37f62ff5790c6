// The persistent layout of nova: one region, named after the file system. The unit is the block of
// 4 KiB; blocks are numbered from the start of the region, and block 0 is never data, so that 0 can
// mean "none". Nothing stored is a pointer: it means the same on another node that reads it.
//
//   block 0  +--------------------------------------------------------------+
//            | superblock | at 256: the mark of a clean unmount             |
//   block 1  | copy of the superblock                                       |
//   block 2  | journals: 64 records of 256 bytes, one a session             |
//   block 6  | inode table: 256 bytes each                                  |
//            | what a clean unmount saves: bitmaps of blocks and of inodes  |
//            | pages of logs, and blocks of data, in any order              |
//            +--------------------------------------------------------------+
//
// An inode (InodeRecord) is a line of words that change atomically, followed by what the inode was
// created with (InodeBase), which never changes. Everything that happens to it later is in its log:
// entries of whole cache lines, in linked pages. An entry never changes; it belongs to the log once
// the inode's tail word, eight bytes, points past it.
//
//   tail word   | version: 24 bits | end of the log, in units of 64 bytes: 40 bits, 0: empty |
//   log page    | entry | entry | ...                      | trailer: next, used, owner      |
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "platform/base/units.h"
#include "services/fs/fs.h"
#include "systems/nova/owner.h"

namespace perdura::systems::nova {

inline constexpr Bytes kBlock = fs::kBlock;
inline constexpr std::uint64_t kMagic = 0x41564F4E44524550;  // "PERDNOVA"
inline constexpr std::uint32_t kVersion = 1;

struct Superblock {
  std::uint64_t magic = 0;
  std::uint32_t version = 0;
  std::uint32_t crc = 0;  // covers the fields that follow
  std::uint64_t size = 0;
  std::uint64_t inodes = 0;
  std::uint64_t log_page_bytes = 0;  // bytes that are used of each log page
};
static_assert(sizeof(Superblock) == 40);
inline constexpr Bytes kSuperblockCopy = kBlock;

// 0 while it is mounted, or was not unmounted; else kClean and the checksum of the saved bitmaps.
inline constexpr Bytes kCleanOffset = 256;
inline constexpr std::uint64_t kClean = std::uint64_t{0xC1EA} << 32;

// Where things are, computed from the superblock.
struct Geometry {
  Bytes size = 0;
  std::uint64_t blocks = 0;
  std::uint64_t inodes = 0;  // numbered from 1
  Bytes log_page_bytes = kBlock;
  Bytes inode_table = 0;
  Bytes saved_blocks = 0;         // bitmap: a bit for each block
  Bytes saved_inodes = 0;         // bitmap: a bit for each inode number
  std::uint64_t first_block = 0;  // the first one for logs and data
  Owner* owner = nullptr;         // knows the data of files if that is elsewhere; not stored

  Geometry() = default;
  Geometry(Bytes size, std::uint64_t inodes, Bytes log_page_bytes);

  Bytes inode_offset(std::uint64_t number) const { return inode_table + (number - 1) * 256; }
  Bytes trailer_in_page() const { return log_page_bytes - kCacheLine; }
  Bytes saved_block_bytes() const { return (blocks + 63) / 64 * kWord; }
  Bytes saved_inode_bytes() const { return inodes / 64 * kWord + kWord; }
  bool is_data(std::uint64_t block, std::uint64_t count = 1) const {
    return block >= first_block && block < blocks && count <= blocks - block;
  }
  // True if the number is that of a page of the owner.
  bool is_elsewhere(std::uint64_t block) const { return owner != nullptr && block >= kFirstPage; }
  // True if a file may have its data there.
  bool is_file_data(std::uint64_t block, std::uint64_t count) const {
    if (owner == nullptr) return is_data(block, count);
    return block >= kFirstPage && block < kEndOfPages && count <= kEndOfPages - block &&
           owner->are_pages(block, count);
  }
};

Superblock superblock_of(const Geometry& geometry);
bool is_intact(const Superblock& superblock);

// --- inodes

inline constexpr std::size_t kInlineTarget = 104;

struct InodeBase {
  std::uint32_t crc = 0;  // covers the fields that follow
  std::uint32_t mode = 0;
  std::uint64_t number = 0;
  std::uint64_t generation = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t links = 0;  // a directory has 1 until it is removed
  std::uint32_t created_nanoseconds = 0;
  std::int64_t created_seconds = 0;
  std::uint64_t device = 0;
  std::uint64_t target_length = 0;  // a symbolic link's
  std::uint64_t target_block = 0;   // if it is longer than kInlineTarget
  std::uint32_t target_crc = 0;
  std::uint32_t reserved = 0;
  std::array<char, kInlineTarget> target{};
  std::array<std::byte, 8> unused{};
};
static_assert(sizeof(InodeBase) == 192);

struct InodeRecord {
  std::uint64_t state = 0;  // generation << 1 | 1 if it exists
  std::uint64_t tail = 0;
  std::array<std::uint64_t, 2> head{};  // offset of the first log page, indexed by the version's
                                        // parity
  std::uint64_t parent = 0;             // a directory's: count of changes << 32 | inode
  std::array<std::uint64_t, 3> reserved{};
  InodeBase base{};
};
static_assert(sizeof(InodeRecord) == 256);
static_assert(offsetof(InodeRecord, base) == kCacheLine);
inline constexpr Bytes kStateWord = offsetof(InodeRecord, state);
inline constexpr Bytes kTailWord = offsetof(InodeRecord, tail);
inline constexpr Bytes kHeadWords = offsetof(InodeRecord, head);
inline constexpr Bytes kParentWord = offsetof(InodeRecord, parent);

constexpr std::uint64_t state_word(std::uint64_t generation, bool exists) {
  return generation << 1 | (exists ? 1 : 0);
}

constexpr int kEndBits = 40;
constexpr std::uint64_t kVersions = std::uint64_t{1} << (64 - kEndBits);
constexpr std::uint64_t tail_word(std::uint64_t version, Bytes end) {
  return version << kEndBits | end / kCacheLine;
}
constexpr std::uint64_t version_of(std::uint64_t tail) { return tail >> kEndBits; }
constexpr Bytes end_of(std::uint64_t tail) {
  return (tail & ((std::uint64_t{1} << kEndBits) - 1)) * kCacheLine;
}

constexpr std::uint64_t parent_of(std::uint64_t word) { return word & 0xFFFFFFFF; }
constexpr std::uint64_t parent_word_after(std::uint64_t word, std::uint64_t parent) {
  return ((word >> 32) + 1) << 32 | parent;
}

std::uint32_t checksum(const InodeBase& base);

// --- logs

struct PageTrailer {
  std::uint64_t next = 0;  // offset of the next page; undefined in the page with the tail
  std::uint64_t used = 0;  // bytes of entries; undefined like `next`
  std::uint64_t inode = 0;
  std::uint64_t generation = 0;
  std::array<std::uint64_t, 4> reserved{};
};
static_assert(sizeof(PageTrailer) == kCacheLine);

enum class EntryType : std::uint8_t {
  none,
  write,         // blocks of a file
  size,          // truncate
  attributes,    // all but the size
  add,           // a name in a directory
  remove,        // a name from a directory
  set_extended,  // an extended attribute
  remove_extended,
};
inline constexpr std::uint8_t kLastEntryType = 7;
inline constexpr std::uint8_t kUnwritten = 1;   // WriteEntry: blocks that read as zeros
inline constexpr std::uint8_t kExtends = 2;     // WriteEntry: a file that is larger stays so
inline constexpr std::uint8_t kCuts = 2;        // SizeEntry: blocks after the end are freed
inline constexpr std::uint8_t kKeepsLinks = 1;  // AttributesEntry: the link count stays as it is
inline constexpr std::uint8_t kInBlocks = 1;    // ExtendedEntry: the value is in blocks

struct EntryHeader {
  std::uint32_t crc = 0;  // covers the rest of the entry; seeded with inode, generation and offset
  EntryType type{};
  std::uint8_t flags = 0;
  std::uint16_t lines = 1;  // length of the entry in cache lines
  std::int64_t seconds = 0;
  std::uint32_t nanoseconds = 0;
  std::uint32_t mode = 0;  // only the type if the entry is a name's
};
static_assert(sizeof(EntryHeader) == 24);

struct WriteEntry {
  EntryHeader header;
  std::uint64_t file_block = 0;
  std::uint64_t block = 0;  // or page; 0: a hole
  std::uint64_t count = 0;  // number of blocks
  std::uint64_t size = 0;   // size of the file
};
static_assert(sizeof(WriteEntry) == 56);

struct SizeEntry {
  EntryHeader header;
  std::uint64_t size = 0;
};

struct AttributesEntry {
  EntryHeader header;  // `changed`
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t links = 0;
  std::uint32_t accessed_nanoseconds = 0;
  std::int64_t accessed_seconds = 0;
  std::int64_t modified_seconds = 0;
  std::uint32_t modified_nanoseconds = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(AttributesEntry) == kCacheLine);

struct AddEntry {
  EntryHeader header;  // `modified` and `changed` of the directory
  std::uint64_t inode = 0;
  std::uint64_t cookie = 0;  // if a name has this cookie, it names `inode` from now on
  std::uint32_t length = 0;  // length of the name, which follows
  std::uint32_t reserved = 0;
};
static_assert(sizeof(AddEntry) == 48);

struct RemoveEntry {
  EntryHeader header;
  std::uint64_t inode = 0;
  std::uint64_t cookie = 0;
};

// Followed by the name and either the value or the extents of its blocks (block << 16 | count).
struct ExtendedEntry {
  EntryHeader header;
  std::uint32_t name_length = 0;
  std::uint32_t value_length = 0;
  std::uint32_t extents = 0;
  std::uint32_t value_crc = 0;  // if it is in blocks
};
static_assert(sizeof(ExtendedEntry) == 40);

inline constexpr std::size_t kMostValueExtents = 17;
inline constexpr std::size_t kLongestInlineValue = 128;
inline constexpr std::size_t kLargestEntry = 448;
static_assert(sizeof(ExtendedEntry) + fs::kLongestAttributeName + kMostValueExtents * 8 <=
              kLargestEntry);
static_assert(sizeof(ExtendedEntry) + fs::kLongestAttributeName + kLongestInlineValue <=
              kLargestEntry);
static_assert(sizeof(AddEntry) + fs::kLongestName <= kLargestEntry);
inline constexpr Bytes kSmallestLogPage = 512;
static_assert(kLargestEntry + sizeof(PageTrailer) <= kSmallestLogPage);

constexpr std::uint16_t lines_of(Bytes bytes) {
  return static_cast<std::uint16_t>((bytes + kCacheLine - 1) / kCacheLine);
}

// The checksum of an entry of whole lines, which begins with its header. What an earlier use of the
// page left there, or what belongs to another inode, does not have it.
std::uint32_t checksum(std::span<const std::byte> entry, std::uint64_t inode,
                       std::uint64_t generation, Bytes offset);

// --- journals

inline constexpr std::uint32_t kJournals = 64;
inline constexpr Bytes kJournalBytes = 256;
inline constexpr Bytes kJournalOffset = 2 * kBlock;
inline constexpr std::size_t kJournalWords = 8;

struct JournalWord {
  std::uint64_t offset = 0;
  std::uint64_t before = 0;
  std::uint64_t after = 0;
};

// Words that change together. If the checksum is right, recovery stores `after` in every word that
// still is `before`.
struct JournalRecord {
  std::uint32_t crc = 0;  // covers the fields that follow
  std::uint32_t count = 0;
  std::uint64_t sequence = 0;
  std::array<JournalWord, kJournalWords> words{};
};
static_assert(sizeof(JournalRecord) <= kJournalBytes);

std::uint32_t checksum(const JournalRecord& record);
constexpr bool has_possible_count(const JournalRecord& record) {
  return record.count > 0 && record.count <= kJournalWords;
}
// Returns true if the word is one that journals may change. Recovery asks this even of records
// whose checksum is right.
bool is_possible(const Geometry& geometry, const JournalWord& word);

// The word that marks a clean unmount with these saved bitmaps.
std::uint64_t clean_mark(std::span<const std::uint64_t> blocks,
                         std::span<const std::uint64_t> inodes);

template <class T>
std::span<const std::byte> bytes_of(const T& object) {
  return std::as_bytes(std::span(&object, 1));
}

}  // namespace perdura::systems::nova
