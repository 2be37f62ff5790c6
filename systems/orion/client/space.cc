// The size of files and their allocated space.
#include <algorithm>

#include "systems/orion/client/session.h"

namespace perdura::systems::orion {

using nova::Mapped;

// A block that is zeroed in part is copied.
Task<std::errc> Session::zero_edge(CachedInode& inode, Change& change, std::uint64_t index,
                                   Bytes begin, Bytes end, const nova::EntryHeader& header,
                                   Bytes size) {
  const Mapped mapped = inode.inode.blocks.get(index);
  if (!mapped || mapped.is_unwritten() || begin == end) co_return std::errc{};
  const Result<nova::Extent> taken = co_await take_pages(change, 1);
  if (!taken) co_return taken.error();
  const PageCache::Pin page = co_await cache_.take();
  std::errc error = co_await read_block(inode, index, page.bytes());
  if (error != std::errc{}) co_return error;
  std::fill(page.bytes().begin() + static_cast<std::ptrdiff_t>(begin),
            page.bytes().begin() + static_cast<std::ptrdiff_t>(end), std::byte{0});
  error = co_await write_page(change, taken->first, page);
  if (error != std::errc{}) co_return error;
  change.add(nova::WriteEntry{header, index, taken->first, 1, size});
  co_return std::errc{};
}

// The rest of the last page, after the new end of the file, becomes zeros, so that the file can grow
// again.
Task<std::errc> Session::try_truncate(CachedInode& inode, Bytes size,
                                      const fs::WriteOptions& options) {
  const std::uint32_t mode = mode_after(inode.inode, options);
  const bool cuts = size < inode.inode.size;
  Change change = change_of(inode);
  if (cuts && size % kPage != 0) {
    const nova::EntryHeader header = entry_header(nova::EntryType::write, options.now, mode);
    const std::errc error = co_await zero_edge(inode, change, size / kPage, size % kPage, kPage,
                                               header, inode.inode.size);
    if (error != std::errc{}) {
      give_back(change);
      co_return error;
    }
  }
  change.add(nova::SizeEntry{
      entry_header(nova::EntryType::size, options.now, mode, cuts ? nova::kCuts : std::uint8_t{0}),
      size});
  const bool is_current = co_await inodes_.is_current(inode);
  if (!is_current) {
    give_back(change);
    co_return std::errc::resource_unavailable_try_again;
  }
  co_return co_await commit(inode, change, By::commit);
}

Task<Result<void>> Session::truncate(InodeNumber number, Bytes size,
                                     const fs::WriteOptions& options) {
  const OwnPages::Use use(own_);
  const Inodes::Use inode = co_await inodes_.use(number);
  for (;;) {
    std::errc error = co_await use_regular(*inode);
    if (error != std::errc{}) co_return fail(error);
    if (size > fs::kLargestFile) co_return fail(std::errc::file_too_large);
    error = co_await try_truncate(*inode, size, options);
    if (error == std::errc{}) co_return Result<void>{};
    if (error != std::errc::resource_unavailable_try_again) co_return fail(error);
    ++repetitions_;
  }
}

// Fills all holes of a range with unwritten pages.
Task<std::errc> Session::fill_holes(CachedInode& inode, Change& change, std::uint64_t first,
                                    std::uint64_t last, const nova::EntryHeader& header,
                                    Bytes size) {
  std::uint64_t hole = first;
  std::vector<nova::Extent> holes;
  const auto end_hole = [&](std::uint64_t end) {
    if (end > hole) holes.push_back({hole, end - hole});
    hole = end + 1;
  };
  inode.inode.blocks.visit(first, last, [&](std::uint64_t index, Mapped) {
    end_hole(index);
    return true;
  });
  end_hole(last + 1);
  co_return co_await fill(change, holes, header, size);
}

// The pages of written blocks are not made unwritten in place: a client that still has an older log
// may read them for a while, and whoever writes to unwritten space may use them in place.
Task<std::errc> Session::replace_written(CachedInode& inode, Change& change, std::uint64_t first,
                                         std::uint64_t last, const nova::EntryHeader& header,
                                         Bytes size) {
  std::vector<nova::Extent> written;
  inode.inode.blocks.visit(first, last, [&](std::uint64_t index, Mapped mapped) {
    if (!mapped.is_unwritten()) nova::add_extent(written, index, 1);
    return true;
  });
  co_return co_await fill(change, written, header, size);
}

// Allocates unwritten pages to these blocks.
Task<std::errc> Session::fill(Change& change, std::span<const nova::Extent> blocks,
                              const nova::EntryHeader& header, Bytes size) {
  for (const nova::Extent& missing : blocks) {
    for (std::uint64_t done = 0; done < missing.count;) {
      const Result<nova::Extent> taken = co_await take_pages(change, missing.count - done);
      if (!taken) co_return taken.error();
      nova::WriteEntry entry{header, missing.first + done, taken->first, taken->count, size};
      entry.header.flags |= nova::kUnwritten;
      change.add(entry);
      done += taken->count;
    }
  }
  co_return std::errc{};
}

Task<std::errc> Session::try_allocate(CachedInode& inode, fs::AllocationMode mode, Bytes offset,
                                      Bytes length, const fs::WriteOptions& options) {
  const nova::Inode& file = inode.inode;
  const bool punches = mode == fs::AllocationMode::punch;
  const bool zeros =
      punches || mode == fs::AllocationMode::zero || mode == fs::AllocationMode::zero_keep_size;
  const bool grows = mode == fs::AllocationMode::extend || mode == fs::AllocationMode::zero;
  const Bytes end = offset + length;
  const Bytes size = grows ? std::max(file.size, end) : file.size;
  const std::uint32_t new_mode = mode_after(file, options);
  const nova::EntryHeader header = entry_header(nova::EntryType::write, options.now, new_mode);
  Change change = change_of(inode);
  const auto give_up = [&](std::errc error) {
    give_back(change);
    return error;
  };
  if (!punches) {
    const std::uint64_t first = offset / kPage;
    const std::uint64_t last = (end - 1) / kPage;
    const std::uint64_t all = link_.welcome().pages * link_.welcome().groups;
    if (last - first >= all) co_return std::errc::no_space_on_device;
    const std::errc error = co_await fill_holes(inode, change, first, last, header, size);
    if (error != std::errc{}) co_return give_up(error);
  }
  if (zeros) {
    const std::uint64_t first = (offset + kPage - 1) / kPage;
    const std::uint64_t whole = std::max(first, end / kPage);
    std::errc error{};
    if (offset / kPage == (end - 1) / kPage && (offset % kPage != 0 || end % kPage != 0)) {
      error = co_await zero_edge(inode, change, offset / kPage, offset % kPage,
                                 offset % kPage + length, header, size);
    } else {
      if (offset % kPage != 0) {
        error =
            co_await zero_edge(inode, change, offset / kPage, offset % kPage, kPage, header, size);
      }
      if (error == std::errc{} && end % kPage != 0) {
        error = co_await zero_edge(inode, change, end / kPage, 0, end % kPage, header, size);
      }
    }
    if (error != std::errc{}) co_return give_up(error);
    if (whole > first && punches) {
      change.add(nova::WriteEntry{header, first, 0, whole - first, size});
    } else if (whole > first) {
      error = co_await replace_written(inode, change, first, whole - 1, header, size);
      if (error != std::errc{}) co_return give_up(error);
    }
  }
  // The times change even if nothing else does.
  if (change.entries.empty()) {
    change.add(nova::SizeEntry{entry_header(nova::EntryType::size, options.now, new_mode), size});
  }
  const bool is_current = co_await inodes_.is_current(inode);
  if (!is_current) co_return give_up(std::errc::resource_unavailable_try_again);
  co_return co_await commit(inode, change, By::commit);
}

Task<Result<void>> Session::allocate(InodeNumber number, fs::AllocationMode mode, Bytes offset,
                                     Bytes length, const fs::WriteOptions& options) {
  const OwnPages::Use use(own_);
  const Inodes::Use inode = co_await inodes_.use(number);
  for (;;) {
    std::errc error = co_await use_regular(*inode);
    if (error != std::errc{}) co_return fail(error);
    if (length == 0) co_return fail(std::errc::invalid_argument);
    if (length > fs::kLargestFile || offset > fs::kLargestFile - length) {
      co_return fail(std::errc::file_too_large);
    }
    error = co_await try_allocate(*inode, mode, offset, length, options);
    if (error == std::errc{}) co_return Result<void>{};
    if (error != std::errc::resource_unavailable_try_again) co_return fail(error);
    ++repetitions_;
  }
}

}  // namespace perdura::systems::orion
