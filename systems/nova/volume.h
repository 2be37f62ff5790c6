// A mounted file system: the state that its sessions share, and the steps of which operations
// consist. An operation
//
// 1. locks its inodes (Locked),
// 2. describes by log entries what it does to each of them (Context::add()),
// 3. commits all entries at once (commit()), which then applies them to the inodes in DRAM, in the
//    same way as reading the log will.
//
// Nothing here suspends, so a lock is held only by a thread that is inside an operation.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "platform/platform.h"
#include "systems/nova/inode.h"
#include "systems/nova/parameters.h"

namespace perdura::systems::nova {

// Bytes written to persistent memory.
struct Written {
  Bytes metadata = 0;
  Bytes data = 0;
  Bytes journal = 0;
};

// Events that are counted.
enum class Happened : std::uint8_t {
  log_pages,
  fast_collections,
  links_changed,
  thorough_collections,
  journaled,
  redone,
  orphans
};
inline constexpr std::size_t kHappened = 7;

// The working state of a session, reused by each operation.
struct Context {
  std::uint32_t number = 0;  // selects the session's arenas and its journal
  std::uint64_t sequence = 0;
  Written written;

  struct PendingEntry {
    Inode* inode = nullptr;
    std::size_t begin = 0;  // offset in `bytes`
    std::size_t length = 0;
    Bytes offset = 0;
    std::uint64_t page = 0;
  };
  std::vector<PendingEntry> entries;
  std::vector<std::byte> bytes;
  std::vector<JournalWord> words;  // words that change together with the tails
  std::vector<Inode*> changed;
  std::vector<Extent> freed;
  std::vector<Extent> allocated;  // blocks taken by the operation under way, not yet committed
  std::vector<Extent> extents;    // blocks that the operation writes to
  std::array<std::byte, kBlock> block{};

  // Starts an operation without entries.
  void begin() {
    entries.clear();
    bytes.clear();
    words.clear();
    freed.clear();
    allocated.clear();
  }
  // Appends an entry that ends with up to two byte strings.
  template <class T>
  void add(Inode& inode, T entry, std::span<const std::byte> one = {},
           std::span<const std::byte> two = {}) {
    EntryHeader header;
    std::memcpy(static_cast<void*>(&header), &entry, sizeof header);
    header.lines = lines_of(sizeof entry + one.size() + two.size());
    std::memcpy(static_cast<void*>(&entry), &header, sizeof header);
    const std::size_t begin = bytes.size();
    bytes.resize(begin + header.lines * kCacheLine);
    std::memcpy(bytes.data() + begin, &entry, sizeof entry);
    if (!one.empty()) std::memcpy(bytes.data() + begin + sizeof entry, one.data(), one.size());
    if (!two.empty()) {
      std::memcpy(bytes.data() + begin + sizeof entry + one.size(), two.data(), two.size());
    }
    entries.push_back({&inode, begin, header.lines * kCacheLine, 0, 0});
  }
};

// Selects an append() that applies the entries later.
struct Later {};

class LayoutCallbacks;
class Volume;

// Locks up to four inodes and makes sure that they are in DRAM. Readers share the locks; but if the
// log of one of the inodes has yet to be read, or entries of it have yet to be applied, the locks
// are taken exclusively.
class Locked {
 public:
  // Appending is changing by append() alone, which leaves entries that wait as they are.
  enum class For : std::uint8_t { reading, changing, appending };
  // Skips numbers that no inode can have.
  Locked(Volume& volume, For what, std::initializer_list<std::uint64_t> numbers);
  ~Locked();
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

  // The inodes in the order of `numbers`; null for a number that was skipped.
  Inode* operator[](std::size_t index) const { return inodes_[index]; }
  // Locks one more inode for changing. Returns null if that would have to wait.
  Inode* try_add(std::uint64_t number);

 private:
  static constexpr std::size_t kMost = 4;

  void lock();
  void unlock();
  bool all_loaded(std::initializer_list<std::uint64_t> numbers);
  bool has(const SharedSpinLock* lock) const;

  Volume& volume_;
  For what_;
  std::array<Inode*, kMost> inodes_{};
  std::array<SharedSpinLock*, kMost> locks_{};  // in ascending order
  std::size_t count_ = 0;                       // number of locks
};

class Volume {
 public:
  Volume(pmem::Region& region, const Geometry& geometry, const Parameters& parameters,
         std::uint32_t sessions);
  ~Volume();

  pmem::Region& region() { return region_; }
  const Geometry& geometry() const { return geometry_; }
  Allocator& blocks() { return blocks_; }
  // When the oldest of the blocks and pages that wait (Parameters::free_delay) will be free;
  // nothing if none waits. An operation that has no space may succeed then.
  std::optional<Time> next_free();
  // The number of the owner's pages that wait.
  std::uint64_t waiting_pages();
  // Frees what has waited until then.
  void free_waiting(Time now);
  // For blocks and pages, as the functions of Allocator.
  bool is_used(std::uint64_t block) const {
    return geometry_.is_elsewhere(block) ? geometry_.owner->is_used(block) : blocks_.is_used(block);
  }
  std::uint64_t mark_used(std::uint64_t first, std::uint64_t count) {
    return geometry_.is_elsewhere(first) ? geometry_.owner->mark_used(first, count)
                                         : blocks_.mark_used(first, count);
  }
  Allocator& numbers() { return numbers_; }
  SpinLock& rename_lock() { return rename_lock_; }

  bool can_be(std::uint64_t number) const { return number >= 1 && number <= geometry_.inodes; }
  // Several inodes share a lock.
  SharedSpinLock& lock_of(std::uint64_t number) { return locks_[number % kLocks].lock; }
  // Returns the inode in DRAM, or null if it is not there. `number` must be valid and locked; the
  // pointer stays valid as long as the lock or a hold.
  Inode* find(std::uint64_t number);
  // As find(), but adds the inode to DRAM if it is not there. Needs the exclusive lock.
  Inode& make(std::uint64_t number);
  // Evicts some unused inodes from DRAM if there are more than `cached_inodes`. `busy(lock)` tells
  // whether the caller itself holds the lock.
  template <class Busy>
  void evict(Busy&& busy) {
    if (cached_count_.load(std::memory_order_relaxed) > parameters_.cached_inodes) [[unlikely]]
      evict_some(busy);
  }
  // Reads the log of a locked inode if that has not been done. Returns an error if the inode does
  // not exist or is damaged.
  std::errc use(Inode& inode);
  std::uint64_t cached_inodes() const { return cached_count_.load(std::memory_order_relaxed); }

  // Makes the entries and words of the context durable, atomically, and applies the entries to the
  // inodes in DRAM. If there is no space for the entries, returns no_space_on_device and changes
  // nothing; the caller then calls undo().
  std::errc commit(Context& context, Urgency urgency) { return commit(context, urgency, false); }
  // Adds entries that somebody else has made to the log of a locked inode and commits them,
  // together. They may be of the types write, size and attributes, one line each; all is given but
  // the checksums, which depend on the place. Who does not know the link count sets kKeepsLinks,
  // and who does not know whether others have extended the file, kExtends. The pages of write
  // entries count as used from then on. If an entry is impossible, it returns invalid_argument; it
  // may also return an error of use() or commit(). After an error nothing has changed.
  std::errc append(Context& context, Inode& inode, std::span<const std::byte> entries,
                   Urgency urgency);
  // The same, but leaves it to others to apply the entries to the inode in DRAM, and to free what
  // they replace: to whoever locks the inode next, other than for appending, or to catch_up().
  // Until then garbage in the log stays. The inode must be locked for appending or for changing;
  // nothing but its tail may be looked at before the lock is given back.
  std::errc append(Context& context, Inode& inode, std::span<const std::byte> entries,
                   Urgency urgency, Later);
  // Applies the entries that wait, if there are any, to a locked inode.
  void apply_waiting(Inode& inode);
  // Applies the entries that wait, and collects garbage in the log. The inode must be locked for
  // changing, and the context must have no operation under way.
  void catch_up(Context& context, Inode& inode);
  // The inode's tail word as it is stored.
  static std::uint64_t tail(const Inode& inode) { return inode.log.tail; }
  // Queues the state word that marks a locked, damaged inode free, and returns true, unless what
  // can be read of it says that it has other names.
  bool will_end_damaged(Context& context, const Inode& inode);
  // Marks the damaged inode as gone in DRAM. The word of will_end_damaged() must have been
  // committed. Its blocks stay allocated until the next mount, since only recovery, which reads all
  // intact inodes, can tell which blocks no other inode owns.
  void end_damaged(Inode& inode);
  // Writes a new log that holds the inode's state in DRAM, and frees the old one. Returns false if
  // there is no space for it.
  bool rewrite_log(Context& context, Inode& inode);
  // Frees the blocks that a failed operation had allocated.
  void undo(Context& context);

  // Frees a locked inode that has neither names nor holds, with its blocks and its number. The word
  // of will_discard() must have been committed.
  void discard(Context& context, Inode& inode);
  // Queues the state word that marks the inode free, which must be committed before discard().
  void will_discard(Context& context, Inode& inode);

  // Writes data by non-temporal stores; it is durable after the next fence.
  void write_data(Context& context, Bytes offset, std::span<const std::byte> data) {
    region_.write_streaming(offset, data);
    context.written.data += data.size();
  }
  // Writes metadata and flushes it; it is durable after the next fence.
  void write_metadata(Context& context, Bytes offset, std::span<const std::byte> bytes) {
    region_.write(offset, bytes);
    region_.flush(offset, bytes.size());
    context.written.metadata += bytes.size();
  }
  void store_metadata(Context& context, Bytes offset, std::uint64_t word) {
    region_.store(offset, word);
    region_.flush(offset, kWord);
    context.written.metadata += kWord;
  }

  // --- recovery.cc
  // Rebuilds the bitmaps after a failure. Damage makes only the damaged inode unusable: an inode
  // whose log cannot be read, or that shares blocks with another one, gives I/O errors from then
  // on, and all blocks of it that can be found stay allocated. With `only_reads`, inodes that share
  // blocks can still be read. Logs are read by at most as many threads as there may be sessions.
  Task<> recover(Thread& thread, bool only_reads);
  // The damage that recovery has met, in words that follow the name of the file system; empty if
  // there was none.
  const std::string& damage() const { return damage_; }
  // Returns why the root directory cannot be used, so that nothing in the file system can be
  // reached; empty if it is intact. Must be called before the first session.
  std::string root_damage();
  // Takes the bitmaps that a clean unmount saved. Returns false if they do not match `mark`, the
  // word at kCleanOffset.
  bool load_saved(std::uint64_t mark);
  // Unmounts: frees inodes without names and saves the bitmaps. The volume must have no sessions.
  void save();
  // Compares the state in DRAM with what recovery would read. Returns the first contradiction;
  // empty if there is none.
  std::string audit();

  void count(Happened what, std::uint64_t times = 1) {
    happened_[static_cast<std::size_t>(what)].fetch_add(times, std::memory_order_relaxed);
  }
  std::uint64_t count_of(Happened what) const {
    return happened_[static_cast<std::size_t>(what)].load(std::memory_order_relaxed);
  }

  // --- bind.cc (layout_callbacks.h)
  // The callbacks, which must outlive the volume. To be set before the first session; the volume must
  // have neither an owner nor a delay.
  void call_back(LayoutCallbacks& callbacks);
  // Binds a regular file, which must be held until it is unbound. Errors are invalid_argument for
  // other inodes, and those of use().
  std::errc bind(std::uint64_t number);
  void unbind(std::uint64_t number);
  // Frees blocks for which cm_keeps() has returned true.
  void free_kept(const Extent& extent);
  // True if the device may still read what this file had before changes that it has not learned of.
  bool device_is_behind(const Inode& inode) const;

  // Session numbers. take_session() throws UsageError if all are taken.
  std::uint32_t take_session();
  void give_back_session(std::uint32_t number);

 private:
  static constexpr std::uint64_t kGroup = 1024;
  using Group = std::array<Inode*, kGroup>;
  static constexpr std::size_t kLocks = 1024;
  struct alignas(64) InodeLock {
    SharedSpinLock lock;
  };

  bool is_delaying() const { return parameters_.free_delay > Picoseconds{}; }
  // Frees blocks or pages to which no durable word refers any more, after the delay.
  void release(const Extent& extent) {
    if (is_local_) [[likely]]
      return blocks_.free(extent.first, extent.count);
    release_later(extent);
  }
  void release_later(const Extent& extent);
  void free_now(const Extent& extent);

  void evict_some(const std::function<bool(const SharedSpinLock*)>& is_busy);
  bool try_evict(std::uint64_t number);

  void tell_others(const Context& context);
  void tell_of_layouts(const Context& context);
  std::errc commit(Context& context, Urgency urgency, bool is_applied_later);
  std::errc append(Context& context, Inode& inode, std::span<const std::byte> entries,
                   Urgency urgency, bool is_applied_later);
  void let_entries_wait(const Context& context);
  bool add_made(Context& context, Inode& inode, std::span<const std::byte> entries);
  void tell_owner(std::span<const JournalWord> words);
  bool reserve_pages(Context& context, Inode& inode, Urgency urgency);
  void drop_spare(Inode& inode);
  void write_entries(Context& context);
  void add_page(Context& context, Inode& inode);
  void change_words(Context& context);
  void collect(Context& context, Inode& inode);
  void free_dead_pages(Context& context, Inode& inode);
  void add_all_entries(Context& context, Inode& inode);
  void redo_journals();
  struct Scanned;
  void scan(std::span<const std::uint64_t> numbers, std::size_t part, std::size_t parts,
            Scanned& found);
  Task<Scanned> scan_all(Thread& thread, std::span<const std::uint64_t> numbers);
  void keep_readable(std::span<const std::uint64_t> damaged);
  std::vector<std::uint64_t> sharing_blocks(std::span<const std::uint64_t> numbers);

  pmem::Region& region_;
  Geometry geometry_;
  Parameters parameters_;
  LayoutCallbacks* callbacks_ = nullptr;
  // Data is in the region, nobody is told of its layout, and what is freed is free at once.
  bool is_local_;
  Allocator blocks_;
  Allocator numbers_;
  SpinLock rename_lock_;
  std::vector<InodeLock> locks_;
  std::vector<std::atomic<Group*>> groups_;
  // Numbers of the inodes in DRAM, and the clock hand of eviction, an index into them.
  SpinLock cached_lock_;
  std::vector<std::uint64_t> cached_;
  std::size_t hand_ = 0;
  std::atomic<std::uint64_t> cached_count_{0};
  SpinLock sessions_lock_;
  std::vector<bool> sessions_;
  std::array<std::atomic<std::uint64_t>, kHappened> happened_{};
  struct WaitingExtent {
    Time until{};
    Extent extent;
  };
  bool is_over(const WaitingExtent& waiting, Time now);
  SpinLock waiting_lock_;
  std::deque<WaitingExtent> waiting_;  // oldest first
  std::set<std::uint64_t> sharing_;    // inodes that share blocks with others; constant after
                                       // recovery
  std::string damage_;
  // The bitmap of blocks is not exact, so a clean unmount must not vouch for it: the next mount
  // recovers.
  std::atomic<bool> needs_recovery_{false};
};

// Makes an empty file system in a region of zeros, which has the size of the geometry's blocks. The
// root directory is as `config` says. Throws UsageError if the size is impossible.
void make_volume(pmem::Region& region, const Geometry& geometry, const fs::FsConfig& config);
// Opens the file system in the region, after recovery unless it was unmounted. The geometry is the
// one that is stored, but for the owner. Throws UsageError if it cannot be used.
Task<std::unique_ptr<Volume>> open_volume(Thread& thread, pmem::Region& region,
                                          const Geometry& geometry, const Parameters& parameters,
                                          std::uint32_t threads, bool read_only);

}  // namespace perdura::systems::nova
