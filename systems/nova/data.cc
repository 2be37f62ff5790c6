// Data of regular files. A write goes to new blocks, which the commit puts in place of the old
// ones.
#include <algorithm>

#include "systems/nova/operations.h"

namespace perdura::systems::nova {

std::errc Operations::use_regular(Inode* inode) {
  if (inode == nullptr) return std::errc::no_such_file_or_directory;
  if (const std::errc error = volume_.use(*inode); error != std::errc{}) return error;
  return inode->is(S_IFREG) ? std::errc{} : std::errc::invalid_argument;
}

std::uint32_t Operations::mode_after(const Inode& inode, const fs::WriteOptions& options) const {
  std::uint32_t mode = inode.mode;
  if (!options.clear_set_id) return mode;
  mode &= ~static_cast<std::uint32_t>(S_ISUID);
  if ((mode & S_IXGRP) != 0) mode &= ~static_cast<std::uint32_t>(S_ISGID);
  return mode;
}

Result<Bytes> Operations::read(std::uint64_t number, Bytes offset, std::span<std::byte> into) {
  const Locked locked(volume_, Locked::For::reading, {number});
  Inode* const inode = locked[0];
  if (const std::errc error = use_regular(inode); error != std::errc{}) return fail(error);
  const Bytes length = std::min<Bytes>(into.size(), inode->size - std::min(offset, inode->size));
  if (length == 0) return Bytes{0};
  // Adjacent blocks are read with one call.
  Bytes done = 0;  // bytes of the range that are read or zeroed
  Bytes run_begin = 0;
  Bytes run_end = 0;  // offset in the range
  Bytes run_in_region = 0;
  const auto finish = [&](Bytes until) {
    if (run_end > run_begin) {
      // A process that has mapped the file may write to it without our locks.
      const auto part = into.subspan(run_begin, run_end - run_begin);
      inode->mappings > 0 ? volume_.region().read(run_in_region, part)
                          : volume_.region().read_unchanging(run_in_region, part);
      done = run_end;
    }
    if (until > done)
      std::fill_n(into.begin() + static_cast<std::ptrdiff_t>(done), until - done, std::byte{0});
    done = until;
  };
  inode->blocks.visit(offset / kBlock, (offset + length - 1) / kBlock,
                      [&](std::uint64_t index, Mapped mapped) {
                        if (mapped.is_unwritten()) return true;
                        const Bytes at = index * kBlock;
                        const Bytes skipped = std::max(offset, at) - at;
                        const Bytes begin = at + skipped - offset;
                        const Bytes end = std::min(at + kBlock - offset, length);
                        const Bytes in_region = mapped.block() * kBlock + skipped;
                        if (run_end > run_begin && begin == run_end &&
                            in_region == run_in_region + run_end - run_begin) {
                          run_end = end;
                          return true;
                        }
                        finish(begin);
                        run_begin = begin;
                        run_end = end;
                        run_in_region = in_region;
                        return true;
                      });
  finish(length);
  return length;
}

// Finds the blocks that a write to these file blocks goes to: new ones, or blocks that were
// allocated and never written, whose contents nobody sees before the commit marks them as written.
// So allocated space can be written to even if there is no other. But a device may not have learned
// yet that what was written there has been zeroed; then all blocks are new.
bool Operations::find_blocks(Inode& inode, std::uint64_t first, std::uint64_t last,
                             Urgency urgency) {
  context_.extents.clear();
  const auto add_new = [&](std::uint64_t count) {
    while (count > 0) {
      const Extent extent = volume_.blocks().allocate(context_.number, count, urgency);
      if (extent.count == 0) {
        volume_.undo(context_);
        return false;
      }
      context_.allocated.push_back(extent);
      context_.extents.push_back(extent);
      count -= extent.count;
    }
    return true;
  };
  std::uint64_t next = first;
  bool found = true;
  const bool is_read_still = volume_.device_is_behind(inode);
  inode.blocks.visit(first, last, [&](std::uint64_t index, Mapped mapped) {
    if (!mapped.is_unwritten() || is_read_still) return true;
    found = add_new(index - next);
    if (!found) return false;
    add_extent(context_.extents, mapped.block(), 1);
    next = index + 1;
    return true;
  });
  return found && add_new(last + 1 - next);
}

// True if the range has no hole: then a write frees as many blocks as it takes.
bool Operations::has_no_hole(const Inode& inode, std::uint64_t first, std::uint64_t last) {
  std::uint64_t next = first;
  inode.blocks.visit(first, last, [&](std::uint64_t index, Mapped) { return index == next++; });
  return next == last + 1;
}

// Reads a block of the file up to the end of the file; the rest is zeros.
void Operations::read_block(Inode& inode, std::uint64_t index, std::span<std::byte> into) {
  const Mapped mapped = inode.blocks.get(index);
  const Bytes valid = !mapped || mapped.is_unwritten()
                          ? 0
                          : std::min(kBlock, inode.size - std::min(inode.size, index * kBlock));
  if (valid > 0) volume_.region().read(mapped.block() * kBlock, into.first(valid));
  std::fill(into.begin() + static_cast<std::ptrdiff_t>(valid), into.end(), std::byte{0});
}

// Zeroes the rest of the last block before the file grows, since it may hold anything. Nobody can
// see these bytes before the new size is committed, so writing in place is safe.
void Operations::zero_behind_end(Inode& inode, Bytes size) {
  const Bytes begin = inode.size % kBlock;
  if (size <= inode.size || begin == 0) return;
  const Mapped last = inode.blocks.get(inode.size / kBlock);
  if (!last || last.is_unwritten() || volume_.geometry().is_elsewhere(last.block())) return;
  static constexpr std::array<std::byte, kBlock> kZeros{};
  const Bytes in_region = last.block() * kBlock + begin;
  const auto zeros = std::span(kZeros).first(kBlock - begin);
  volume_.write_data(context_, in_region, zeros);
}

void Operations::write_in_place(Inode& inode, Bytes offset, std::span<const std::byte> data) {
  while (!data.empty()) {
    const Bytes part = std::min<Bytes>(data.size(), kBlock - offset % kBlock);
    const Mapped mapped = inode.blocks.get(offset / kBlock);
    volume_.write_data(context_, mapped.block() * kBlock + offset % kBlock, data.first(part));
    data = data.subspan(part);
    offset += part;
  }
}

Result<Bytes> Operations::write(std::uint64_t number, std::optional<Bytes> at,
                                std::span<const std::byte> data, const fs::WriteOptions& options) {
  const Locked locked(volume_, Locked::For::changing, {number});
  Inode* const inode = locked[0];
  if (const std::errc error = use_regular(inode); error != std::errc{}) return fail(error);
  const Bytes offset = at.value_or(inode->size);
  if (data.empty()) return offset;
  if (data.size() > fs::kLargestFile || offset > fs::kLargestFile - data.size()) {
    return fail(std::errc::file_too_large);
  }
  const Bytes end = offset + data.size();
  const std::uint64_t first = offset / kBlock;
  const std::uint64_t last = (end - 1) / kBlock;
  const Bytes size = std::max(inode->size, end);
  const std::uint32_t mode = mode_after(*inode, options);
  if (inode->mappings > 0) return write_mapped(*inode, offset, data, options);
  context_.begin();
  if (!find_blocks(*inode, first, last, Urgency::grows) &&
      !(has_no_hole(*inode, first, last) && find_blocks(*inode, first, last, Urgency::changes))) {
    return fail(std::errc::no_space_on_device);
  }
  // If the write begins in the last block, it copies the rest of that block itself.
  if (inode->size / kBlock < first) zero_behind_end(*inode, size);

  // Blocks that the data fills only in part start as copies of the current contents.
  const Bytes before = offset % kBlock;
  const Bytes behind = last * kBlock + kBlock - end;
  std::span<const std::byte> rest = data;
  std::uint64_t index = first;
  for (const Extent& extent : context_.extents) {
    std::uint64_t block = extent.first;
    std::uint64_t left = extent.count;
    while (left > 0) {
      const bool is_partial = (index == first && before > 0) || (index == last && behind > 0);
      if (is_partial) {
        read_block(*inode, index, context_.block);
        const Bytes begin = index == first ? before : 0;
        const Bytes part = std::min<Bytes>(kBlock - begin, rest.size());
        copy_bytes(std::span(context_.block).subspan(begin, part), rest.first(part));
        volume_.write_data(context_, block * kBlock, context_.block);
        rest = rest.subspan(part);
        ++index, ++block, --left;
        continue;
      }
      // As many adjacent whole blocks as there are.
      const std::uint64_t whole = std::min<std::uint64_t>(left, rest.size() / kBlock);
      volume_.write_data(context_, block * kBlock, rest.first(whole * kBlock));
      rest = rest.subspan(whole * kBlock);
      index += whole;
      block += whole;
      left -= whole;
    }
  }
  index = first;
  for (const Extent& extent : context_.extents) {
    context_.add(*inode, WriteEntry{header(EntryType::write, options.now, mode), index,
                                    extent.first, extent.count, size});
    index += extent.count;
  }
  // The data has its blocks; the commit needs only space for its entries.
  if (const std::errc error = volume_.commit(context_, Urgency::changes); error != std::errc{}) {
    volume_.undo(context_);
    return fail(error);
  }
  return offset;
}

// A mapped file keeps its blocks, so its data changes in place, not atomically.
Result<Bytes> Operations::write_mapped(Inode& inode, Bytes offset, std::span<const std::byte> data,
                                       const fs::WriteOptions& options) {
  const Bytes end = offset + data.size();
  const Bytes size = std::max(inode.size, end);
  if (data.size() / kBlock > volume_.geometry().blocks) return fail(std::errc::no_space_on_device);
  if (const std::errc error = own_blocks(inode, offset / kBlock, (end - 1) / kBlock);
      error != std::errc{}) {
    return fail(error);
  }
  context_.begin();
  zero_behind_end(inode, size);
  write_in_place(inode, offset, data);
  context_.add(inode,
               SizeEntry{header(EntryType::size, options.now, mode_after(inode, options)), size});
  if (const std::errc error = volume_.commit(context_, Urgency::changes); error != std::errc{}) {
    return fail(error);
  }
  return offset;
}

// Allocated blocks count as data, written or not.
Result<Bytes> Operations::seek(std::uint64_t number, Bytes offset, bool for_data) {
  const Locked locked(volume_, Locked::For::reading, {number});
  Inode* const inode = locked[0];
  if (const std::errc error = use_regular(inode); error != std::errc{}) return fail(error);
  if (offset >= inode->size) return fail(std::errc::no_such_device_or_address);
  std::uint64_t index = offset / kBlock;
  const std::uint64_t last = (inode->size - 1) / kBlock;
  bool found = false;
  inode->blocks.visit(index, last, [&](std::uint64_t at, Mapped) {
    if (for_data) {
      index = at;
      found = true;
      return false;
    }
    if (at != index) return false;
    ++index;
    return true;
  });
  if (for_data && !found) return fail(std::errc::no_such_device_or_address);
  return std::min(std::max(offset, index * kBlock), inode->size);
}

}  // namespace perdura::systems::nova
