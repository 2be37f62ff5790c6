// The size of files and their allocated space.
//
// Space that was allocated but not written is marked as unwritten and reads as zeros, so that
// allocating a gibibyte takes no longer than allocating a block, and zeroing a range costs no
// writes.
#include <algorithm>

#include "systems/nova/operations.h"

namespace perdura::systems::nova {

Result<void> Operations::truncate(std::uint64_t number, Bytes size,
                                  const fs::WriteOptions& options) {
  const Locked locked(volume_, Locked::For::changing, {number});
  Inode* const inode = locked[0];
  if (const std::errc error = use_regular(inode); error != std::errc{}) return fail(error);
  if (size > fs::kLargestFile) return fail(std::errc::file_too_large);
  context_.begin();
  zero_behind_end(*inode, size);
  const std::uint8_t flags = size < inode->size ? kCuts : 0;
  context_.add(
      *inode,
      SizeEntry{header(EntryType::size, options.now, mode_after(*inode, options), flags), size});
  if (flags == kCuts && inode->is_bound && inode->mappings == 0)
    move_last_block(*inode, size, options);
  if (const std::errc error = volume_.commit(context_, Urgency::frees); error != std::errc{}) {
    volume_.undo(context_);
    return fail(error);
  }
  return {};
}

// The bytes after the end are zeroed in place when a bound file grows again, which may be before its
// device has learned that the file was cut. So the block that the cut goes through moves, and what
// the device still reads stays as it was.
void Operations::move_last_block(Inode& inode, Bytes size, const fs::WriteOptions& options) {
  const std::uint64_t index = size / kBlock;
  const Mapped last = inode.blocks.get(index);
  if (size % kBlock == 0 || !last || last.is_unwritten()) return;
  if (volume_.geometry().is_elsewhere(last.block())) return;
  const Extent moved = volume_.blocks().allocate(context_.number, 1, Urgency::frees);
  if (moved.count == 0) return;  // then a read of the cut part that is under way may see zeros
  context_.allocated.push_back(moved);
  read_block(inode, index, context_.block);
  std::fill(context_.block.begin() + static_cast<std::ptrdiff_t>(size % kBlock),
            context_.block.end(), std::byte{0});
  volume_.write_data(context_, moved.first * kBlock, context_.block);
  const EntryHeader write = header(EntryType::write, options.now, mode_after(inode, options));
  context_.add(inode, WriteEntry{write, index, moved.first, 1, size});
}

namespace {

// The blocks of a range: those that lie entirely in it, and those at its ends that do not.
struct Range {
  std::uint64_t first = 0;  // first whole block
  std::uint64_t end = 0;    // one past the last whole block
  struct Edge {
    std::uint64_t index = 0;
    Bytes begin = 0;
    Bytes end = 0;
  };
  std::array<Edge, 2> edges{};
  std::size_t edge_count = 0;

  Range(Bytes offset, Bytes length) {
    const Bytes last = offset + length;
    first = (offset + kBlock - 1) / kBlock;
    end = std::max(first, last / kBlock);
    if (offset / kBlock == (last - 1) / kBlock) {
      if (first == end || last / kBlock < first) {
        edges[edge_count++] = {offset / kBlock, offset % kBlock, offset % kBlock + length};
      }
      return;
    }
    if (offset % kBlock != 0) edges[edge_count++] = {offset / kBlock, offset % kBlock, kBlock};
    if (last % kBlock != 0) edges[edge_count++] = {last / kBlock, 0, last % kBlock};
  }
};

}  // namespace

Result<void> Operations::allocate(std::uint64_t number, fs::AllocationMode mode, Bytes offset,
                                  Bytes length, const fs::WriteOptions& options) {
  const Locked locked(volume_, Locked::For::changing, {number});
  Inode* const inode = locked[0];
  if (const std::errc error = use_regular(inode); error != std::errc{}) return fail(error);
  if (length == 0) return fail(std::errc::invalid_argument);
  if (length > fs::kLargestFile || offset > fs::kLargestFile - length) {
    return fail(std::errc::file_too_large);
  }
  const bool punches = mode == fs::AllocationMode::punch;
  const bool zeros =
      punches || mode == fs::AllocationMode::zero || mode == fs::AllocationMode::zero_keep_size;
  const Urgency urgency = punches ? Urgency::frees : Urgency::grows;
  const bool grows = mode == fs::AllocationMode::extend || mode == fs::AllocationMode::zero;
  const Bytes size = grows ? std::max(inode->size, offset + length) : inode->size;
  const std::uint32_t new_mode = mode_after(*inode, options);
  const EntryHeader write = header(EntryType::write, options.now, new_mode);
  const Range range(offset, length);
  context_.begin();

  if (!punches) {
    // Fill all holes with unwritten blocks.
    const std::uint64_t first = offset / kBlock;
    const std::uint64_t last = (offset + length - 1) / kBlock;
    if (last - first >= volume_.geometry().blocks) return fail(std::errc::no_space_on_device);
    std::uint64_t hole = first;
    std::vector<Extent> holes;
    const auto end_hole = [&](std::uint64_t end) {
      if (end > hole) holes.push_back({hole, end - hole});
      hole = end + 1;
    };
    inode->blocks.visit(first, last, [&](std::uint64_t index, Mapped) {
      end_hole(index);
      return true;
    });
    end_hole(last + 1);
    for (const Extent& missing : holes) {
      for (std::uint64_t done = 0; done < missing.count;) {
        const Extent extent =
            volume_.blocks().allocate(context_.number, missing.count - done, Urgency::grows);
        if (extent.count == 0) {
          volume_.undo(context_);
          return fail(std::errc::no_space_on_device);
        }
        context_.allocated.push_back(extent);
        WriteEntry entry{write, missing.first + done, extent.first, extent.count, size};
        entry.header.flags |= kUnwritten;
        context_.add(*inode, entry);
        done += extent.count;
      }
    }
  }
  if (zeros) {
    // Blocks that are zeroed in part are copied, unless the file is mapped.
    for (std::size_t i = 0; i < range.edge_count; ++i) {
      const Range::Edge& edge = range.edges[i];
      const Mapped mapped = inode->blocks.get(edge.index);
      if (!mapped || mapped.is_unwritten()) continue;
      if (inode->mappings > 0) {
        // Whoever has mapped the file stores to this block, or a peer does: it must not move.
        context_.block.fill(std::byte{0});
        write_in_place(*inode, edge.index * kBlock + edge.begin,
                       std::span(context_.block).first(edge.end - edge.begin));
        continue;
      }
      const Extent copy = volume_.blocks().allocate(context_.number, 1, urgency);
      if (copy.count == 0) {
        volume_.undo(context_);
        return fail(std::errc::no_space_on_device);
      }
      context_.allocated.push_back(copy);
      read_block(*inode, edge.index, context_.block);
      std::fill(context_.block.begin() + static_cast<std::ptrdiff_t>(edge.begin),
                context_.block.begin() + static_cast<std::ptrdiff_t>(edge.end), std::byte{0});
      volume_.write_data(context_, copy.first * kBlock, context_.block);
      context_.add(*inode, WriteEntry{write, edge.index, copy.first, 1, size});
    }
    if (range.end > range.first) {
      if (punches) {
        context_.add(*inode, WriteEntry{write, range.first, 0, range.end - range.first, size});
      } else {
        // Written blocks become unwritten, in place.
        WriteEntry run;
        const auto end_run = [&] {
          if (run.count > 0) context_.add(*inode, run);
        };
        inode->blocks.visit(range.first, range.end - 1, [&](std::uint64_t index, Mapped mapped) {
          if (mapped.is_unwritten()) return true;
          if (run.count > 0 && index == run.file_block + run.count &&
              mapped.block() == run.block + run.count) {
            ++run.count;
            return true;
          }
          end_run();
          run = WriteEntry{write, index, mapped.block(), 1, size};
          run.header.flags |= kUnwritten;
          return true;
        });
        end_run();
      }
    }
  }
  zero_behind_end(*inode, size);
  // The times change even if nothing else does.
  if (context_.entries.empty()) {
    context_.add(*inode, SizeEntry{header(EntryType::size, options.now, new_mode), size});
  }
  if (const std::errc error = volume_.commit(context_, urgency); error != std::errc{}) {
    volume_.undo(context_);
    return fail(error);
  }
  return {};
}

Result<std::vector<fs::MappedExtent>> Operations::map(std::uint64_t number, Bytes offset,
                                                      Bytes length) {
  const Locked locked(volume_, Locked::For::changing, {number});
  Inode* const inode = locked[0];
  if (const std::errc error = use_regular(inode); error != std::errc{}) return fail(error);
  if (length == 0 || offset % kBlock != 0 || length % kBlock != 0 ||
      offset > fs::kLargestFile - std::min(fs::kLargestFile, length)) {
    return fail(std::errc::invalid_argument);
  }
  const std::uint64_t first = offset / kBlock;
  const std::uint64_t last = first + length / kBlock - 1;
  if (last - first >= volume_.geometry().blocks) return fail(std::errc::no_space_on_device);
  if (const std::errc error = own_blocks(*inode, first, last); error != std::errc{}) {
    return fail(error);
  }
  ++inode->mappings;
  std::vector<fs::MappedExtent> extents;
  inode->blocks.visit(first, last, [&](std::uint64_t index, Mapped mapped) {
    const Bytes in_region = mapped.block() * kBlock;
    if (!extents.empty() && extents.back().in_region + extents.back().length == in_region) {
      extents.back().length += kBlock;
    } else {
      extents.push_back({index * kBlock, in_region, kBlock});
    }
    return true;
  });
  return extents;
}

// Gives the whole range written blocks, zeroed where there were none. Times do not change.
std::errc Operations::own_blocks(Inode& inode, std::uint64_t first, std::uint64_t last) {
  context_.begin();
  static constexpr std::array<std::byte, kBlock> kZeros{};
  const EntryHeader like = header(EntryType::write, inode.changed, inode.mode);
  for (std::uint64_t index = first; index <= last; ++index) {
    const Mapped mapped = inode.blocks.get(index);
    if (mapped && !mapped.is_unwritten()) continue;
    std::uint64_t block = mapped.block();
    if (!mapped) {
      const Extent extent = volume_.blocks().allocate(context_.number, 1, Urgency::grows);
      if (extent.count == 0) {
        volume_.undo(context_);
        return std::errc::no_space_on_device;
      }
      context_.allocated.push_back(extent);
      block = extent.first;
    }
    volume_.write_data(context_, block * kBlock, kZeros);
    context_.add(inode, WriteEntry{like, index, block, 1, inode.size});
  }
  if (inode.size % kBlock != 0 && first <= inode.size / kBlock && inode.size / kBlock <= last) {
    zero_behind_end(inode, inode.size / kBlock * kBlock + kBlock);
  }
  if (context_.entries.empty()) {
    volume_.region().drain();
    return {};
  }
  set_attributes(inode, inode.attributes());
  const std::errc error =
      volume_.commit(context_, context_.allocated.empty() ? Urgency::changes : Urgency::grows);
  if (error != std::errc{}) volume_.undo(context_);
  return error;
}

// Flushes all blocks of a mapped file, since stores to it may be in the caches.
Result<void> Operations::sync(std::uint64_t number) {
  const Locked locked(volume_, Locked::For::reading, {number});
  Inode* const inode = locked[0];
  if (inode == nullptr) return fail(std::errc::no_such_file_or_directory);
  if (const std::errc error = volume_.use(*inode); error != std::errc{}) return fail(error);
  if (inode->mappings == 0) return {};
  inode->blocks.visit(0, ~std::uint64_t{0}, [&](std::uint64_t, Mapped mapped) {
    if (!mapped.is_unwritten()) volume_.region().flush(mapped.block() * kBlock, kBlock);
    return true;
  });
  volume_.region().drain();
  return {};
}

void Operations::unmap(std::uint64_t number) {
  const Locked locked(volume_, Locked::For::changing, {number});
  Inode* const inode = locked[0];
  if (volume_.use(*inode) == std::errc{} && inode->mappings > 0) --inode->mappings;
}

}  // namespace perdura::systems::nova
