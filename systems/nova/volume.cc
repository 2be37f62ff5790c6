#include "systems/nova/volume.h"

#include <algorithm>

#include "platform/base/error.h"

namespace perdura::systems::nova {

Locked::Locked(Volume& volume, For what, std::initializer_list<std::uint64_t> numbers)
    : volume_(volume), what_(what) {
  for (const std::uint64_t number : numbers) {
    if (!volume.can_be(number)) continue;
    SharedSpinLock* const lock = &volume.lock_of(number);
    if (!has(lock)) locks_[count_++] = lock;
  }
  std::sort(locks_.begin(), locks_.begin() + static_cast<std::ptrdiff_t>(count_));
  lock();
  if (what_ == For::reading && !all_loaded(numbers)) {
    unlock();
    what_ = For::changing;
    lock();
  }
  std::size_t index = 0;
  for (const std::uint64_t number : numbers) {
    Inode*& inode = inodes_[index++];
    if (!volume.can_be(number)) continue;
    if (what_ == For::reading) {
      inode = volume.find(number);
    } else {
      inode = &volume.make(number);
      if (inode->waiting != nullptr && what_ != For::appending) [[unlikely]]
        volume.apply_waiting(*inode);
    }
    if (!inode->used.load(std::memory_order_relaxed))
      inode->used.store(true, std::memory_order_relaxed);
  }
  volume.evict([this](const SharedSpinLock* each) { return has(each); });
}

Locked::~Locked() { unlock(); }

void Locked::lock() {
  for (std::size_t i = 0; i < count_; ++i) {
    what_ == For::reading ? locks_[i]->lock_shared() : locks_[i]->lock();
  }
}

void Locked::unlock() {
  for (std::size_t i = count_; i > 0; --i) {
    what_ == For::reading ? locks_[i - 1]->unlock_shared() : locks_[i - 1]->unlock();
  }
}

bool Locked::has(const SharedSpinLock* lock) const {
  const auto end = locks_.begin() + static_cast<std::ptrdiff_t>(count_);
  return std::find(locks_.begin(), end, lock) != end;
}

bool Locked::all_loaded(std::initializer_list<std::uint64_t> numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [&](std::uint64_t number) {
    if (!volume_.can_be(number)) return true;
    const Inode* const inode = volume_.find(number);
    return inode != nullptr && inode->loaded && inode->waiting == nullptr;
  });
}

Inode* Locked::try_add(std::uint64_t number) {
  SharedSpinLock* const lock = &volume_.lock_of(number);
  if (!has(lock)) {
    if (!lock->try_lock()) return nullptr;
    locks_[count_++] = lock;
  }
  Inode& inode = volume_.make(number);
  inode.used.store(true, std::memory_order_relaxed);
  return &inode;
}

namespace {

// Blocks that are kept for operations that free space when there is none left: they need log pages.
std::uint64_t reserve_of(const Geometry& geometry) {
  return std::max<std::uint64_t>(8, geometry.blocks / 64);
}

}  // namespace

Volume::Volume(pmem::Region& region, const Geometry& geometry, const Parameters& parameters,
               std::uint32_t sessions)
    : region_(region),
      geometry_(geometry),
      parameters_(parameters),
      is_local_(geometry.owner == nullptr && !is_delaying()),
      blocks_(geometry.first_block, geometry.blocks, sessions, reserve_of(geometry)),
      numbers_(1, geometry.inodes + 1, sessions, 0),
      locks_(kLocks),
      groups_(geometry.inodes / kGroup + 1),
      sessions_(sessions, false) {
  if (is_delaying()) blocks_.reclaim_by([this] { free_waiting(Executor::current().now()); });
}

Volume::~Volume() {
  for (auto& group : groups_) {
    Group* const inodes = group.load();
    if (inodes == nullptr) continue;
    for (Inode* const inode : *inodes) delete inode;
    delete inodes;
  }
}

Inode* Volume::find(std::uint64_t number) {
  Group* const group = groups_[number / kGroup].load(std::memory_order_acquire);
  return group == nullptr ? nullptr : (*group)[number % kGroup];
}

Inode& Volume::make(std::uint64_t number) {
  if (Inode* const found = find(number)) return *found;
  auto made = std::make_unique<Inode>();
  made->number = number;
  cached_lock_.lock();
  std::atomic<Group*>& group = groups_[number / kGroup];
  if (group.load(std::memory_order_relaxed) == nullptr) {
    group.store(new Group{}, std::memory_order_release);
  }
  cached_.push_back(number);
  cached_count_.store(cached_.size(), std::memory_order_relaxed);
  cached_lock_.unlock();
  return *((*group.load(std::memory_order_relaxed))[number % kGroup] = made.release());
}

// The clock algorithm: the hand goes around the inodes in DRAM. An inode that was used since the
// hand last passed stays for another round.
void Volume::evict_some(const std::function<bool(const SharedSpinLock*)>& is_busy) {
  constexpr int kLooks = 8;
  cached_lock_.lock();
  for (int i = 0; i < kLooks && cached_.size() > parameters_.cached_inodes; ++i) {
    if (hand_ >= cached_.size()) hand_ = 0;
    const std::uint64_t number = cached_[hand_];
    SharedSpinLock& lock = lock_of(number);
    bool is_gone = false;
    if (!is_busy(&lock) && lock.try_lock()) {
      is_gone = try_evict(number);
      lock.unlock();
    }
    if (is_gone) {
      cached_[hand_] = cached_.back();
      cached_.pop_back();
    } else {
      ++hand_;
    }
  }
  cached_count_.store(cached_.size(), std::memory_order_relaxed);
  cached_lock_.unlock();
}

bool Volume::try_evict(std::uint64_t number) {
  Inode*& slot = (*groups_[number / kGroup].load(std::memory_order_relaxed))[number % kGroup];
  Inode& inode = *slot;
  if (inode.used.exchange(false) || inode.holds > 0 || inode.mappings > 0) return false;
  apply_waiting(inode);  // frees what the entries replace
  // One value is in DRAM only: the version of the log's next tail, if pages were freed since the
  // last one. Without it a tail value could come again (commit.cc).
  if (inode.exists && inode.log.version != version_of(inode.log.tail)) {
    const Bytes tail = geometry_.inode_offset(number) + kTailWord;
    region_.store(tail, tail_word(inode.log.version, inode.log.end));
    region_.persist(tail, kWord);
    if (geometry_.owner != nullptr) geometry_.owner->changed(number);
  }
  delete std::exchange(slot, nullptr);
  return true;
}

std::errc Volume::use(Inode& inode) {
  if (!inode.loaded) [[unlikely]]
    load(region_, geometry_, inode);
  if (!inode.exists) return std::errc::no_such_file_or_directory;
  if (!sharing_.empty() && sharing_.contains(inode.number)) inode.damaged = true;
  return inode.damaged ? std::errc::io_error : std::errc{};
}

bool Volume::will_end_damaged(Context& context, const Inode& inode) {
  if (!inode.exists || inode.links > 1) return false;
  const Bytes offset = geometry_.inode_offset(inode.number) + kStateWord;
  const std::uint64_t state = region_.load(offset);
  context.words.push_back({offset, state, state & ~std::uint64_t{1}});
  return true;
}

void Volume::end_damaged(Inode& inode) {
  inode.exists = false;
  needs_recovery_ = true;
  // A number that is still held stays taken, and one that is known to share blocks is not reused
  // before the next mount.
  if (inode.holds == 0 && !sharing_.contains(inode.number)) numbers_.free(inode.number, 1);
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
  for (const Extent& extent : context.freed) release(extent);
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
