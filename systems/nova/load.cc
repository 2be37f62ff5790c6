// Reads inodes and their logs, checking each value before it is used.
#include <fmt/format.h>

#include <array>
#include <unordered_set>

#include "platform/base/plain_name.h"
#include "systems/nova/inode.h"

namespace perdura::systems::nova {

namespace {

constexpr std::uint64_t kMostFileBlocks = fs::kLargestFile / kBlock + 1;

std::string problem_with_extended(const Geometry& geometry, const EntryView& entry) {
  const auto header = entry.as<ExtendedEntry>();
  const bool sets = header.header.type == EntryType::set_extended;
  if (header.name_length == 0 || header.name_length > fs::kLongestAttributeName) {
    return "has a name of impossible length";
  }
  if (header.value_length > fs::kLargestAttribute) return "has a value that is too long";
  const bool in_blocks = (header.header.flags & kInBlocks) != 0;
  if (in_blocks != (header.extents > 0)) return "does not say where its value is";
  const Bytes rest = !sets ? 0 : in_blocks ? header.extents * 8 : header.value_length;
  if (header.extents > kMostValueExtents ||
      sizeof header + header.name_length + rest > entry.bytes.size()) {
    return "is longer than it says";
  }
  std::uint64_t blocks = 0;
  for (std::uint32_t i = 0; i < header.extents; ++i) {
    std::uint64_t packed = 0;
    std::memcpy(&packed, entry.bytes.data() + sizeof header + header.name_length + i * 8, 8);
    if ((packed & 0xFFFF) == 0 || !geometry.is_data(packed >> 16, packed & 0xFFFF)) {
      return "has a value outside of the data";
    }
    blocks += packed & 0xFFFF;
  }
  if (in_blocks && blocks * kBlock < header.value_length)
    return "has a value without enough blocks";
  return {};
}

std::string problem_with_name(const Geometry& geometry, const EntryView& entry) {
  const auto add = entry.as<AddEntry>();
  if (add.length == 0 || add.length > fs::kLongestName ||
      sizeof add + add.length > entry.bytes.size()) {
    return "has a name of impossible length";
  }
  if (!is_entry_name(entry.text(sizeof add, add.length))) return "has a name that no file can have";
  if (add.inode == 0 || add.inode > geometry.inodes) return "names an inode that cannot be";
  if (add.header.mode >> 12 == 0 || add.header.mode >> 12 > 15) return "has no type";
  if (add.cookie == 0 || add.cookie >> 62 != 0) return "has a cookie that no name has";
  return {};
}

bool is_page(const Geometry& geometry, Bytes offset) {
  return offset % kBlock == 0 && geometry.is_data(offset / kBlock);
}

}  // namespace

std::string problem_with(const Geometry& geometry, const Inode& inode, const EntryView& entry) {
  const auto header = entry.as<EntryHeader>();
  const bool of_file = header.type == EntryType::write || header.type == EntryType::size;
  const bool of_directory = header.type == EntryType::add || header.type == EntryType::remove;
  if (header.type == EntryType::none || static_cast<std::uint8_t>(header.type) > kLastEntryType) {
    return "has no known type";
  }
  if (of_file && !inode.is(S_IFREG)) return "is of a regular file, which this is not";
  if (of_directory && inode.directory == nullptr) return "is of a directory, which this is not";
  if ((of_file || header.type == EntryType::attributes) &&
      (header.mode & S_IFMT) != (inode.mode & S_IFMT)) {
    return "has the type of another inode";
  }
  switch (header.type) {
    case EntryType::write: {
      const auto write = entry.as<WriteEntry>();
      if (write.size > fs::kLargestFile || write.count == 0 || write.count > kMostFileBlocks ||
          write.file_block > kMostFileBlocks - write.count) {
        return "lies outside of any file";
      }
      if (write.block != 0 && !geometry.is_file_data(write.block, write.count)) {
        return "has blocks outside of the data";
      }
      return {};
    }
    case EntryType::size:
      return entry.as<SizeEntry>().size > fs::kLargestFile ? "is larger than any file" : "";
    case EntryType::add:
      return problem_with_name(geometry, entry);
    case EntryType::set_extended:
    case EntryType::remove_extended:
      return problem_with_extended(geometry, entry);
    default:
      return {};
  }
}

std::string problem_with(const Geometry& geometry, std::uint64_t number, const InodeBase& base) {
  if (base.crc != checksum(base)) return "what it was made with has a wrong checksum";
  if (base.number != number) return "what it was made with is of another inode";
  const std::uint32_t type = base.mode & S_IFMT;
  if (type != S_IFREG && type != S_IFDIR && type != S_IFLNK && type != S_IFCHR && type != S_IFBLK &&
      type != S_IFIFO && type != S_IFSOCK) {
    return "it has no known type";
  }
  if (base.target_length > fs::kLongestSymlink || (base.target_length > 0) != (type == S_IFLNK) ||
      (base.target_block != 0) != (base.target_length > kInlineTarget) ||
      (base.target_block != 0 && !geometry.is_data(base.target_block))) {
    return "the target of the link is impossible";
  }
  return {};
}

namespace {

std::string read_log(pmem::Region& region, const Geometry& geometry, Inode& inode, Bytes head,
                     const SeenEntry& seen_entry) {
  Log& log = inode.log;
  const Bytes end = end_of(log.tail);
  log.version = version_of(log.tail);
  if (end == 0) return {};
  const Bytes last = end / kBlock * kBlock;
  if (!is_page(geometry, last) || end - last > geometry.trailer_in_page()) {
    return fmt::format("its tail {:#x} is outside of the data", end);
  }
  std::unordered_set<Bytes> seen;
  std::array<std::byte, kLargestEntry> buffer;
  for (Bytes page = head;;) {
    if (!is_page(geometry, page)) return fmt::format("log page {:#x} is outside of the data", page);
    if (!seen.insert(page).second) return fmt::format("log page {:#x} is twice in the log", page);
    const auto trailer = region.read_object<PageTrailer>(page + geometry.trailer_in_page());
    if (trailer.inode != inode.number || trailer.generation != inode.generation) {
      return fmt::format("log page {:#x} belongs to another inode", page);
    }
    const Bytes used = page == last ? end - last : trailer.used;
    if (used > geometry.trailer_in_page() || used % kCacheLine != 0) {
      return fmt::format("log page {:#x} has more entries than room", page);
    }
    log.pages.push_back({.offset = page});
    for (Bytes at = 0; at < used;) {
      const Bytes offset = page + at;
      region.read(offset, std::span(buffer).first(kCacheLine));
      EntryHeader header;
      std::memcpy(static_cast<void*>(&header), buffer.data(), sizeof header);
      const Bytes length = header.lines * kCacheLine;
      if (length == 0 || length > std::min<Bytes>(kLargestEntry, used - at)) {
        return fmt::format("log entry {:#x} has an impossible length", offset);
      }
      if (length > kCacheLine) {
        region.read(offset + kCacheLine,
                    std::span(buffer).subspan(kCacheLine, length - kCacheLine));
      }
      const EntryView entry{std::span(buffer).first(length), offset, log.last_page()};
      if (header.crc != checksum(entry.bytes, inode.number, inode.generation, offset)) {
        return fmt::format("log entry {:#x} has a wrong checksum", offset);
      }
      if (const std::string problem = problem_with(geometry, inode, entry); !problem.empty()) {
        return fmt::format("log entry {:#x} {}", offset, problem);
      }
      if (seen_entry) seen_entry(entry);
      apply(inode, entry, nullptr);
      at += length;
    }
    if (page == last) break;
    page = trailer.next;
  }
  log.end = end;
  return {};
}

}  // namespace

std::string load(pmem::Region& region, const Geometry& geometry, Inode& inode) {
  return load(region, geometry, inode,
              region.read_object<InodeRecord>(geometry.inode_offset(inode.number)));
}

std::string load(pmem::Region& region, const Geometry& geometry, Inode& inode,
                 const InodeRecord& record, const SeenEntry& seen) {
  inode.loaded = true;
  inode.damaged = false;
  inode.exists = (record.state & 1) != 0;
  inode.generation = record.state >> 1;
  inode.holds = 0;
  if (!inode.exists) return {};
  const InodeBase& base = record.base;
  inode.damaged = true;
  inode.mode = inode.links = 0;
  inode.forget_log();
  if (std::string wrong = problem_with(geometry, inode.number, base); !wrong.empty()) return wrong;
  if (base.generation != inode.generation) return "what it was made with is of another inode";
  inode.begin(base);
  inode.parent_word = record.parent;
  if (inode.is(S_IFDIR) && (inode.parent() == 0 || inode.parent() > geometry.inodes)) {
    return "its parent is impossible";
  }
  inode.log.tail = record.tail;
  std::string problem =
      read_log(region, geometry, inode, record.head[version_of(record.tail) & 1], seen);
  inode.damaged = !problem.empty();
  return problem;
}

}  // namespace perdura::systems::nova
