// Binding files, and telling of changes of their layout (layout_callbacks.h).
#include <algorithm>

#include "systems/nova/layout_callbacks.h"
#include "systems/nova/volume.h"

namespace perdura::systems::nova {

namespace {

// A range of bytes that grows to contain others.
struct Hull {
  Bytes begin = ~Bytes{0};
  Bytes end = 0;
  void add(Bytes from, Bytes to) {
    if (from >= to) return;
    begin = std::min(begin, from);
    end = std::max(end, to);
  }
  bool empty() const { return begin >= end; }
};

// The extents of the written data in a range of a file.
std::vector<fs::MappedExtent> extents_in(const Inode& inode, Bytes begin, Bytes end) {
  std::vector<fs::MappedExtent> extents;
  end = std::min(end, inode.size);
  if (begin >= end) return extents;
  inode.blocks.visit(begin / kBlock, (end - 1) / kBlock, [&](std::uint64_t index, Mapped mapped) {
    if (mapped.is_unwritten()) return true;
    const Bytes from = std::max(begin, index * kBlock);
    const Bytes to = std::min(end, (index + 1) * kBlock);
    const Bytes in_region = mapped.block() * kBlock + from % kBlock;
    if (!extents.empty() && extents.back().in_file + extents.back().length == from &&
        extents.back().in_region + extents.back().length == in_region) {
      extents.back().length += to - from;
    } else {
      extents.push_back({from, in_region, to - from});
    }
    return true;
  });
  return extents;
}

}  // namespace

void Volume::call_back(LayoutCallbacks& callbacks) {
  callbacks_ = &callbacks;
  is_local_ = false;
}

std::errc Volume::bind(std::uint64_t number) {
  const Locked locked(*this, Locked::For::changing, {number});
  Inode* const inode = locked[0];
  if (inode == nullptr) return std::errc::no_such_file_or_directory;
  if (const std::errc error = use(*inode); error != std::errc{}) return error;
  if (!inode->is(S_IFREG)) return std::errc::invalid_argument;
  inode->is_bound = true;
  inode->told_size = inode->size;
  callbacks_->cm_bind(number);
  callbacks_->cm_init(number, inode->size, extents_in(*inode, 0, inode->size));
  return {};
}

void Volume::unbind(std::uint64_t number) {
  const Locked locked(*this, Locked::For::changing, {number});
  Inode* const inode = locked[0];
  if (inode == nullptr || !std::exchange(inode->is_bound, false)) return;
  callbacks_->cm_destroy(number);
}

// One change is announced for each file, although it may contain more than what has changed:
// whoever sees it sees all of the operation. A cut is announced by itself, before the block that
// it goes through and that has moved, whose remaining bytes are what they were.
void Volume::tell_of_layouts(const Context& context) {
  for (Inode* const inode : context.changed) {
    if (!inode->is_bound) continue;
    Hull changed;
    const Bytes before = std::exchange(inode->told_size, inode->size);
    changed.add(before, inode->size);
    if (inode->size < before) {
      callbacks_->cm_invalidate(inode->number, inode->size, inode->size, before - inode->size);
    }
    for (const Context::PendingEntry& entry : context.entries) {
      if (entry.inode != inode) continue;
      WriteEntry write;
      std::memcpy(static_cast<void*>(&write), context.bytes.data() + entry.begin, sizeof write);
      if (write.header.type != EntryType::write) continue;
      changed.add(std::min(inode->size, write.file_block * kBlock),
                  std::min(inode->size, (write.file_block + write.count) * kBlock));
    }
    if (changed.empty()) continue;
    const auto extents = extents_in(*inode, changed.begin, changed.end);
    const Bytes length = changed.end - changed.begin;
    if (extents.empty()) {
      callbacks_->cm_invalidate(inode->number, inode->size, changed.begin, length);
    } else {
      callbacks_->cm_update(inode->number, inode->size, changed.begin, length, extents);
    }
  }
}

bool Volume::device_is_behind(const Inode& inode) const {
  return inode.is_bound && callbacks_->cm_is_behind();
}

void Volume::free_kept(const Extent& extent) { blocks_.free(extent.first, extent.count); }

}  // namespace perdura::systems::nova
