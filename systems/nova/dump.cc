// The file system as text: one line for each word, entry and journal.
#include <fmt/format.h>

#include <iterator>

#include "platform/base/error.h"
#include "systems/nova/inode.h"
#include "systems/nova/inspect.h"

namespace perdura::systems::nova {

namespace {

// Escapes names, which may contain any bytes.
std::string printable(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F || c == '\\' || c == '"') {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result;
}

std::string time_of(std::int64_t seconds, std::uint32_t nanoseconds) {
  return fmt::format("{}.{:09}", seconds, nanoseconds);
}

std::string text_of(const EntryView& entry) {
  const auto header = entry.as<EntryHeader>();
  const std::string time = time_of(header.seconds, header.nanoseconds);
  switch (header.type) {
    case EntryType::write: {
      const auto write = entry.as<WriteEntry>();
      return fmt::format(
          "write      blocks {}+{} of the file {}{}, size {}{}, mode {:o}, at {}", write.file_block,
          write.count,
          write.block == 0 ? std::string("are a hole") : fmt::format("in block {}", write.block),
          (header.flags & kUnwritten) != 0 ? " (unwritten)" : "",
          (header.flags & kExtends) != 0 ? "at least " : "", write.size, header.mode, time);
    }
    case EntryType::size:
      return fmt::format("size       {}{}, mode {:o}, at {}", entry.as<SizeEntry>().size,
                         (header.flags & kCuts) != 0 ? ", blocks after it are freed" : "",
                         header.mode, time);
    case EntryType::attributes: {
      const auto all = entry.as<AttributesEntry>();
      return fmt::format(
          "attributes mode {:o}, uid {}, gid {}, links {}, accessed {}, modified {}, changed {}",
          header.mode, all.uid, all.gid,
          (header.flags & kKeepsLinks) != 0 ? std::string("as before")
                                            : fmt::format("{}", all.links),
          time_of(all.accessed_seconds, all.accessed_nanoseconds),
          time_of(all.modified_seconds, all.modified_nanoseconds), time);
    }
    case EntryType::add: {
      const auto add = entry.as<AddEntry>();
      return fmt::format("add        \"{}\" is inode {}, type {:o}, cookie {}, at {}",
                         printable(entry.text(sizeof add, add.length)), add.inode, header.mode,
                         add.cookie, time);
    }
    case EntryType::remove: {
      const auto remove = entry.as<RemoveEntry>();
      return fmt::format("remove     cookie {}, inode {}, at {}", remove.cookie, remove.inode,
                         time);
    }
    case EntryType::set_extended:
    case EntryType::remove_extended: {
      const auto extended = entry.as<ExtendedEntry>();
      const std::string name = printable(entry.text(sizeof extended, extended.name_length));
      if (header.type == EntryType::remove_extended) {
        return fmt::format("no extended \"{}\", at {}", name, time);
      }
      return fmt::format("extended   \"{}\", {} bytes in {}, at {}", name, extended.value_length,
                         extended.extents > 0 ? "blocks" : "the entry", time);
    }
    case EntryType::none:
      break;
  }
  return "unknown";
}

}  // namespace

std::string dump(pmem::Region& region, std::optional<fs::InodeNumber> only, Owner* owner) {
  std::string text;
  const auto out = std::back_inserter(text);
  auto geometry = stored_geometry(region, 0);
  if (!geometry) geometry = stored_geometry(region, kSuperblockCopy);
  if (!geometry) {
    throw UsageError(fmt::format("'{}' {}", region.name(), problem_of_superblocks(region)));
  }
  geometry->owner = owner;
  if (!only) {
    fmt::format_to(
        out,
        "superblock: {} bytes, {} blocks of {}, {} inodes at {:#x}, {} bytes of each log "
        "page, data from block {}\n{}\n",
        geometry->size, geometry->blocks, kBlock, geometry->inodes, geometry->inode_table,
        geometry->log_page_bytes, geometry->first_block,
        region.load(kCleanOffset) != 0 ? "unmounted" : "not unmounted");
    for (std::uint32_t i = 0; i < kJournals; ++i) {
      const auto record = region.read_object<JournalRecord>(kJournalOffset + i * kJournalBytes);
      if (!has_possible_count(record) || record.crc != checksum(record)) continue;
      fmt::format_to(out, "journal {}, operation {}\n", i, record.sequence);
      for (std::uint32_t word = 0; word < record.count; ++word) {
        const JournalWord& change = record.words[word];
        const bool is_word = is_possible(*geometry, change);
        fmt::format_to(out, "  {:#x}: {:#x} -> {:#x}{}\n", change.offset, change.before,
                       change.after,
                       is_word && region.load(change.offset) == change.before ? " to be done" : "");
      }
    }
  }
  const std::uint64_t first = only ? static_cast<std::uint64_t>(*only) : 1;
  const std::uint64_t last = only ? first : geometry->inodes;
  if (first == 0 || last > geometry->inodes) {
    throw UsageError(
        fmt::format("there can be no inode {}, only 1 to {}", first, geometry->inodes));
  }
  for (std::uint64_t number = first; number <= last; ++number) {
    const auto record = region.read_object<InodeRecord>(geometry->inode_offset(number));
    if ((record.state & 1) == 0) {
      if (only) fmt::format_to(out, "inode {} does not exist\n", number);
      continue;
    }
    const InodeBase& base = record.base;
    fmt::format_to(
        out,
        "inode {}, generation {}, mode {:o}, uid {}, gid {}, links {}, device {}, created "
        "{}{}\n  log: version {}, from {:#x} to {:#x}\n",
        number, record.state >> 1, base.mode, base.uid, base.gid, base.links, base.device,
        time_of(base.created_seconds, base.created_nanoseconds),
        (base.mode & S_IFMT) == S_IFDIR ? fmt::format(", in directory {}", parent_of(record.parent))
                                        : "",
        version_of(record.tail), record.head[version_of(record.tail) & 1], end_of(record.tail));
    Inode inode;
    inode.number = number;
    const std::string problem = load(region, *geometry, inode, record, [&](const EntryView& entry) {
      fmt::format_to(out, "  {:#x}  {}\n", entry.offset, text_of(entry));
    });
    if (!problem.empty()) fmt::format_to(out, "  damaged: {}\n", problem);
  }
  return text;
}

}  // namespace perdura::systems::nova
