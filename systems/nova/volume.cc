#include "systems/nova/volume.h"

#include <algorithm>

#include "platform/base/error.h"

namespace perdura::systems::nova {

Locked::Locked(std::initializer_list<Inode*> inodes) {
  for (Inode* const inode : inodes) {
    if (inode != nullptr) inodes_[count_++] = inode;
  }
  const auto end = inodes_.begin() + static_cast<std::ptrdiff_t>(count_);
  std::sort(inodes_.begin(), end,
            [](const Inode* a, const Inode* b) { return a->number < b->number; });
  count_ = static_cast<std::size_t>(std::unique(inodes_.begin(), end) - inodes_.begin());
  for (std::size_t i = 0; i < count_; ++i) inodes_[i]->lock.lock();
}

Locked::~Locked() {
  while (count_ > 0) inodes_[--count_]->lock.unlock();
}

namespace {

// For what frees space when there is none: pages of logs.
std::uint64_t reserve_of(const Geometry& geometry) {
  return std::max<std::uint64_t>(8, geometry.blocks / 64);
}

}  // namespace

Volume::Volume(std::unique_ptr<pmem::Region> region, const Geometry& geometry,
               const Parameters& parameters, std::uint32_t sessions)
    : region_(std::move(region)),
      geometry_(geometry),
      parameters_(parameters),
      blocks_(geometry.first_block, geometry.blocks, sessions, reserve_of(geometry)),
      numbers_(1, geometry.inodes + 1, sessions, 0),
      groups_(geometry.inodes / kGroup + 1),
      sessions_(sessions, false) {}

Volume::~Volume() {
  for (auto& group : groups_) {
    Group* const inodes = group.load();
    if (inodes == nullptr) continue;
    for (auto& inode : *inodes) delete inode.load();
    delete inodes;
  }
}

Inode* Volume::inode(std::uint64_t number) {
  if (number == 0 || number > geometry_.inodes) return nullptr;
  std::atomic<Group*>& group = groups_[number / kGroup];
  Group* inodes = group.load(std::memory_order_acquire);
  if (inodes != nullptr) [[likely]] {
    Inode* const found = (*inodes)[number % kGroup].load(std::memory_order_acquire);
    if (found != nullptr) [[likely]]
      return found;
  }
  groups_lock_.lock();
  inodes = group.load(std::memory_order_relaxed);
  if (inodes == nullptr) group.store(inodes = new Group{}, std::memory_order_release);
  std::atomic<Inode*>& place = (*inodes)[number % kGroup];
  Inode* found = place.load(std::memory_order_relaxed);
  if (found == nullptr) {
    found = new Inode;
    found->number = number;
    place.store(found, std::memory_order_release);
  }
  groups_lock_.unlock();
  return found;
}

std::errc Volume::use(Inode& inode) {
  if (!inode.loaded) [[unlikely]]
    load(*region_, geometry_, inode);
  if (!inode.exists) return std::errc::no_such_file_or_directory;
  return inode.damaged ? std::errc::io_error : std::errc{};
}

void Volume::undo(Context& context) {
  for (const Extent& extent : context.allocated) blocks_.free(extent.first, extent.count);
  context.allocated.clear();
}

void Volume::will_discard(Context& context, Inode& inode) {
  context.words.push_back({geometry_.inode_offset(inode.number) + kStateWord,
                           state_word(inode.generation, true),
                           state_word(inode.generation, false)});
}

void Volume::discard(Context& context, Inode& inode) {
  context.freed.clear();
  inode.blocks.visit(0, ~std::uint64_t{0}, [&](std::uint64_t, Mapped mapped) {
    add_extent(context.freed, mapped.block(), 1);
    return true;
  });
  if (inode.extended != nullptr) {
    for (const auto& [name, value] : *inode.extended) {
      for (const Extent& extent : value.blocks) {
        add_extent(context.freed, extent.first, extent.count);
      }
    }
  }
  for (const LogPage& page : inode.log.pages) {
    if (page.offset != 0) add_extent(context.freed, page.offset / kBlock, 1);
  }
  if (inode.target_block != 0) add_extent(context.freed, inode.target_block, 1);
  inode.target_block = 0;
  inode.exists = false;
  inode.forget_log();
  inode.directory.reset();
  for (const Extent& extent : context.freed) blocks_.free(extent.first, extent.count);
  context.freed.clear();
  numbers_.free(inode.number, 1);
}

std::uint32_t Volume::take_session() {
  sessions_lock_.lock();
  const auto free = std::find(sessions_.begin(), sessions_.end(), false);
  const bool found = free != sessions_.end();
  const auto number = static_cast<std::uint32_t>(free - sessions_.begin());
  if (found) *free = true;
  sessions_lock_.unlock();
  if (!found) {
    throw UsageError("more sessions than FsConfig::threads of a nova file system");
  }
  return number;
}

void Volume::give_back_session(std::uint32_t number) {
  sessions_lock_.lock();
  sessions_[number] = false;
  sessions_lock_.unlock();
}

}  // namespace perdura::systems::nova
