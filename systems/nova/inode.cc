#include "systems/nova/inode.h"

#include <algorithm>

namespace perdura::systems::nova {

std::uint64_t Inode::extended_blocks() const {
  std::uint64_t count = 0;
  if (extended != nullptr) {
    for (const auto& [name, value] : *extended) {
      for (const Extent& extent : value.blocks) count += extent.count;
    }
  }
  return count;
}

fs::Attributes Inode::attributes() const {
  return {.inode = fs::InodeNumber{number},
          .generation = generation,
          .mode = mode,
          .uid = uid,
          .gid = gid,
          .links = shown_links(),
          .device = device,
          .size = size,
          .blocks = (block_count + extended_blocks()) * (kBlock / 512),
          .accessed = accessed,
          .modified = modified,
          .changed = changed,
          .created = created};
}

std::uint64_t Inode::live_lines() const {
  std::uint64_t lines = 2;  // attributes and size
  if (directory != nullptr) lines += directory->lines();
  if (extended != nullptr) {
    for (const auto& [name, value] : *extended) lines += value.lines;
  }
  std::uint64_t index = 0;
  Mapped last;
  blocks.visit(0, ~std::uint64_t{0}, [&](std::uint64_t at, Mapped mapped) {
    const bool continues = last && at == index + 1 && mapped.block() == last.block() + 1 &&
                           mapped.is_unwritten() == last.is_unwritten();
    if (!continues) ++lines;
    index = at;
    last = mapped;
    return true;
  });
  return lines;
}

void Inode::forget_log() {
  log = Log{};
  waiting.reset();
  attributes_page = modified_page = size_page = links_page = kNoPage;
  blocks.clear();
  block_count = 0;
  directory.reset();
  extended.reset();
  if (is(S_IFDIR)) directory = std::make_unique<Directory>();
}

void Inode::begin(const InodeBase& base) {
  mode = base.mode;
  uid = base.uid;
  gid = base.gid;
  links = base.links;
  device = base.device;
  generation = base.generation;
  size = base.target_length;
  target_block = base.target_block;
  created = {base.created_seconds, base.created_nanoseconds};
  accessed = modified = changed = created;
  mappings = 0;
  is_bound = false;
  forget_log();
}

AttributesEntry attributes_entry(const Inode& inode) {
  return {.header = {.type = EntryType::attributes,
                     .seconds = inode.changed.seconds,
                     .nanoseconds = inode.changed.nanoseconds,
                     .mode = inode.mode},
          .uid = inode.uid,
          .gid = inode.gid,
          .links = inode.links,
          .accessed_nanoseconds = inode.accessed.nanoseconds,
          .accessed_seconds = inode.accessed.seconds,
          .modified_seconds = inode.modified.seconds,
          .modified_nanoseconds = inode.modified.nanoseconds};
}

void add_extent(std::vector<Extent>& extents, std::uint64_t first, std::uint64_t count) {
  if (!extents.empty() && extents.back().first + extents.back().count == first) {
    extents.back().count += count;
  } else {
    extents.push_back({first, count});
  }
}

namespace {

void move_hold(Inode& inode, std::uint64_t& held, std::uint64_t page) {
  if (held == page) return;
  inode.log.hold(page);
  inode.log.drop(std::exchange(held, page));
}

// The usual entry sets the size, and no earlier one is held for it; the function is for all others.
[[gnu::noinline]] void set_size_slowly(Inode& inode, LogPage& page, Bytes size, bool only_extends) {
  if (only_extends && size < inode.size) {
    // The entry that set the size is the last one that was held for `modified`, whose hold is about
    // to move on to this one.
    const std::uint64_t last = inode.modified_page;
    if (inode.size_page == kNoPage && last != kNoPage) move_hold(inode, inode.size_page, last);
    return;
  }
  inode.log.drop(std::exchange(inode.size_page, kNoPage));
  // Without this entry, one that only extends would not go beyond the former size.
  if (size < inode.size) page.ends_others = true;
  inode.size = size;
}

void set_size(Inode& inode, LogPage& page, Bytes size, bool only_extends) {
  if (size < inode.size || inode.size_page != kNoPage) [[unlikely]]
    return set_size_slowly(inode, page, size, only_extends);
  inode.size = size;
}

// The same for the link count.
[[gnu::noinline]] void set_links_slowly(Inode& inode, std::uint32_t links, bool keeps) {
  if (keeps) {
    const std::uint64_t last = inode.attributes_page;
    if (inode.links_page == kNoPage && last != kNoPage) move_hold(inode, inode.links_page, last);
    return;
  }
  inode.log.drop(std::exchange(inode.links_page, kNoPage));
  inode.links = links;
}

void set_links(Inode& inode, std::uint32_t links, bool keeps) {
  if (keeps || inode.links_page != kNoPage) [[unlikely]]
    return set_links_slowly(inode, links, keeps);
  inode.links = links;
}

void drop_block(Inode& inode, Mapped old, std::vector<Extent>* freed) {
  inode.log.drop(old.page());
  --inode.block_count;
  if (freed != nullptr) add_extent(*freed, old.block(), 1);
}

void erase_blocks(Inode& inode, std::uint64_t first, std::uint64_t last,
                  std::vector<Extent>* freed) {
  inode.blocks.erase(first, last,
                     [&](std::uint64_t, Mapped old) { drop_block(inode, old, freed); });
}

void apply_write(Inode& inode, const EntryView& entry, std::vector<Extent>* freed) {
  const auto write = entry.as<WriteEntry>();
  LogPage& page = inode.log.page(entry.page);
  if (write.block == 0) {
    page.ends_others = true;
    erase_blocks(inode, write.file_block, write.file_block + write.count - 1, freed);
  } else {
    const bool unwritten = (write.header.flags & kUnwritten) != 0;
    page.live += write.count;
    inode.block_count += write.count;
    for (std::uint64_t i = 0; i < write.count; ++i) {
      const Mapped mapped(write.block + i, unwritten, entry.page);
      const Mapped old = inode.blocks.set(write.file_block + i, mapped);
      // The same block with another state is not freed.
      if (old) drop_block(inode, old, old.block() == mapped.block() ? nullptr : freed);
    }
  }
  set_size(inode, page, write.size, (write.header.flags & kExtends) != 0);
}

void apply_extended(Inode& inode, const EntryView& entry, std::vector<Extent>* freed) {
  const auto header = entry.as<ExtendedEntry>();
  const std::string_view name = entry.text(sizeof header, header.name_length);
  if (inode.extended == nullptr) {
    inode.extended = std::make_unique<std::map<std::string, Extended, std::less<>>>();
  }
  const auto old = inode.extended->find(name);
  if (old != inode.extended->end()) {
    inode.log.drop(old->second.page);
    if (freed != nullptr) {
      for (const Extent& extent : old->second.blocks) {
        add_extent(*freed, extent.first, extent.count);
      }
    }
    if (header.header.type == EntryType::remove_extended) inode.extended->erase(old);
  }
  if (header.header.type == EntryType::remove_extended) {
    inode.log.page(entry.page).ends_others = true;
    return;
  }
  Extended value{.offset = entry.offset,
                 .page = entry.page,
                 .name_length = header.name_length,
                 .value_length = header.value_length,
                 .lines = header.header.lines};
  for (std::uint32_t i = 0; i < header.extents; ++i) {
    std::uint64_t packed = 0;
    std::memcpy(&packed, entry.bytes.data() + sizeof header + header.name_length + i * 8, 8);
    value.blocks.push_back({packed >> 16, packed & 0xFFFF});
  }
  inode.log.hold(entry.page);
  inode.extended->insert_or_assign(std::string(name), std::move(value));
}

void apply_add(Inode& inode, const EntryView& entry) {
  const auto add = entry.as<AddEntry>();
  const std::string_view text = entry.text(sizeof add, add.length);
  const Name name{.cookie = add.cookie,
                  .inode = add.inode,
                  .offset = entry.offset,
                  .page = entry.page,
                  .hash = Directory::hash_of(text),
                  .lines = add.header.lines,
                  .length = static_cast<std::uint8_t>(add.length),
                  .type = static_cast<std::uint8_t>(add.header.mode >> 12)};
  inode.log.hold(entry.page);
  if (Name* const old = inode.directory->find_cookie(add.cookie)) {
    inode.log.drop(old->page);
    inode.directory->replace(*old, name);
  } else {
    inode.directory->add(name);
  }
}

}  // namespace

void apply(Inode& inode, const EntryView& entry, std::vector<Extent>* freed) {
  const auto header = entry.as<EntryHeader>();
  const fs::Timestamp time{header.seconds, header.nanoseconds};
  inode.changed = time;
  switch (header.type) {
    case EntryType::write:
      apply_write(inode, entry, freed);
      break;
    case EntryType::size: {
      const Bytes size = entry.as<SizeEntry>().size;
      if ((header.flags & kCuts) != 0) {
        inode.log.page(entry.page).ends_others = true;
        erase_blocks(inode, (size + kBlock - 1) / kBlock, ~std::uint64_t{0}, freed);
      }
      set_size(inode, inode.log.page(entry.page), size, false);
      break;
    }
    case EntryType::attributes: {
      const auto all = entry.as<AttributesEntry>();
      inode.mode = all.header.mode;
      inode.uid = all.uid;
      inode.gid = all.gid;
      set_links(inode, all.links, (header.flags & kKeepsLinks) != 0);
      inode.accessed = {all.accessed_seconds, all.accessed_nanoseconds};
      inode.modified = {all.modified_seconds, all.modified_nanoseconds};
      move_hold(inode, inode.attributes_page, entry.page);
      return;
    }
    case EntryType::add:
      apply_add(inode, entry);
      break;
    case EntryType::remove: {
      inode.log.page(entry.page).ends_others = true;
      // The page with the entry that added the name may be gone.
      if (Name* const name = inode.directory->find_cookie(entry.as<RemoveEntry>().cookie)) {
        inode.log.drop(name->page);
        inode.directory->remove(*name);
      }
      break;
    }
    case EntryType::set_extended:
    case EntryType::remove_extended:
      apply_extended(inode, entry, freed);
      return;
    case EntryType::none:
      return;
  }
  move_hold(inode, inode.modified_page, entry.page);
  if (header.type == EntryType::write || header.type == EntryType::size) inode.mode = header.mode;
  inode.modified = time;
}

std::optional<std::vector<std::byte>> read_long_value(pmem::Region& region,
                                                      const Extended& extended) {
  std::vector<std::byte> value(extended.value_length);
  Bytes done = 0;
  for (const Extent& extent : extended.blocks) {
    const Bytes part = std::min<Bytes>(extent.count * kBlock, value.size() - done);
    region.read(extent.first * kBlock, std::span(value).subspan(done, part));
    done += part;
  }
  const auto entry = region.read_object<ExtendedEntry>(extended.offset);
  if (crc32(0, value) != entry.value_crc) return std::nullopt;
  return value;
}

}  // namespace perdura::systems::nova
