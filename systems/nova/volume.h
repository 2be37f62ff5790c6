// A mounted file system: what its sessions share, and the steps of which operations consist. An
// operation locks its inodes, says by log entries what it does to each, and commits them all at
// once (commit()); the same entries then change the inodes in DRAM, as they will when the log is
// read again.
//
// Nothing here suspends, so a lock is held only by a thread that is in an operation.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "platform/platform.h"
#include "systems/nova/inode.h"
#include "systems/nova/parameters.h"

namespace perdura::systems::nova {

struct Written {
  Bytes metadata = 0;
  Bytes data = 0;
  Bytes journal = 0;
};

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

// What a session has of its own, used again by each operation.
struct Context {
  std::uint32_t number = 0;  // of its arenas and its journal
  std::uint64_t sequence = 0;
  Written written;

  struct Entry {
    Inode* inode = nullptr;
    std::size_t begin = 0;  // in `bytes`
    std::size_t length = 0;
    Bytes place = 0;
    std::uint64_t page = 0;
  };
  std::vector<Entry> entries;
  std::vector<std::byte> bytes;
  std::vector<JournalWord> words;  // that change with the tails
  std::vector<Inode*> changed;
  std::vector<Extent> freed;
  std::vector<Extent> allocated;  // by the operation, and not yet committed
  std::vector<Extent> extents;    // that the operation writes
  std::array<std::byte, kBlock> block{};

  // Starts an operation's entries.
  void begin() {
    entries.clear();
    bytes.clear();
    words.clear();
    freed.clear();
    allocated.clear();
  }
  // Appends an entry that ends with up to two texts.
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

class Volume;

// Locks up to four inodes, and makes them exist in DRAM. What only reads shares the locks with
// others that do; but if an inode's log has yet to be read, nobody shares them.
class Locked {
 public:
  enum class For : std::uint8_t { reading, changing };
  // Numbers of which no inode can be are left out.
  Locked(Volume& volume, For what, std::initializer_list<std::uint64_t> numbers);
  ~Locked();
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

  // In the order in which they were given; null of what was left out.
  Inode* operator[](std::size_t index) const { return inodes_[index]; }
  // Another one, to be changed, if that does not wait; else null.
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
  std::array<SharedSpinLock*, kMost> locks_{};  // ascending
  std::size_t count_ = 0;                       // of locks
};

class Volume {
 public:
  Volume(pmem::Region& region, const Geometry& geometry, const Parameters& parameters,
         std::uint32_t sessions);
  ~Volume();

  pmem::Region& region() { return region_; }
  const Geometry& geometry() const { return geometry_; }
  Allocator& blocks() { return blocks_; }
  Allocator& numbers() { return numbers_; }
  SpinLock& rename_lock() { return rename_lock_; }

  bool can_be(std::uint64_t number) const { return number >= 1 && number <= geometry_.inodes; }
  // Several inodes have the same lock.
  SharedSpinLock& lock_of(std::uint64_t number) { return locks_[number % kLocks].lock; }
  // Of one that is locked and can be: null if it is not in DRAM. Lasts until it is unlocked, or as
  // long as it is held.
  Inode* find(std::uint64_t number);
  // The same; it is made if it is not there. For changing.
  Inode& make(std::uint64_t number);
  // Takes some inodes that are not in use out of DRAM, if there are more than there may be. `busy`
  // says what must stay locked.
  template <class Busy>
  void evict(Busy&& busy) {
    if (cached_count_.load(std::memory_order_relaxed) > parameters_.cached_inodes) [[unlikely]]
      evict_some(busy);
  }
  // For a locked one: an error if it does not exist. Reads its log if that has not been done.
  std::errc use(Inode& inode);
  std::uint64_t cached_inodes() const { return cached_count_.load(std::memory_order_relaxed); }

  // Makes the entries and words of the context durable, all at once, and does them. Fails if there
  // is no room for entries.
  std::errc commit(Context& context, Urgency urgency);
  // Adds the word that ends a locked inode that is damaged, unless what can be read of it says that
  // it has other names. True if it ends.
  bool will_end_damaged(Context& context, const Inode& inode);
  // When that is durable. Its blocks stay used until the next mount, since only recovery, which
  // reads all that is whole, can tell which are nobody's.
  void end_damaged(Inode& inode);
  // Gives the inode, as it is in DRAM, a new log. False if there is no room for one.
  bool rewrite_log(Context& context, Inode& inode);
  // Gives back what an operation that failed had allocated.
  void undo(Context& context);

  // Frees a locked inode that has neither names nor holds, of which that is durable.
  void discard(Context& context, Inode& inode);
  // Adds what discard() must not be called without: the word that says that it does not exist.
  void will_discard(Context& context, Inode& inode);

  // Data, by non-temporal stores; durable with the next fence.
  void write_data(Context& context, Bytes offset, std::span<const std::byte> data) {
    region_.write_streaming(offset, data);
    context.written.data += data.size();
  }
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
  // Damage costs the damaged inode alone: an inode whose log cannot be read, or that shares blocks
  // with another one, is an I/O error from then on, and all that can be read of it keeps its
  // blocks. If nothing is going to be written, inodes that share blocks are read. As many threads
  // as there may be sessions read logs.
  Task<> recover(Thread& thread, bool only_reads);
  // The damage that recovery has met, in words that follow the name of the file system; empty if
  // nothing.
  const std::string& damage() const { return damage_; }
  // Why nothing can be reached in the file system; empty if the root directory is whole. Before
  // anybody uses it.
  std::string root_damage();
  // False if what a clean unmount saved is not intact.
  bool load_saved(std::uint64_t mark);
  void save();
  std::string audit();

  void count(Happened what, std::uint64_t times = 1) {
    happened_[static_cast<std::size_t>(what)].fetch_add(times, std::memory_order_relaxed);
  }
  std::uint64_t count_of(Happened what) const {
    return happened_[static_cast<std::size_t>(what)].load(std::memory_order_relaxed);
  }

  // Numbers of sessions.
  std::uint32_t take_session();
  void give_back_session(std::uint32_t number);

 private:
  static constexpr std::uint64_t kGroup = 1024;
  using Group = std::array<Inode*, kGroup>;
  static constexpr std::size_t kLocks = 1024;
  struct alignas(64) InodeLock {
    SharedSpinLock lock;
  };

  void evict_some(const std::function<bool(const SharedSpinLock*)>& is_busy);
  bool try_evict(std::uint64_t number);

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
  void keep_readable(std::uint64_t number);
  std::vector<std::uint64_t> sharing_blocks(std::span<const std::uint64_t> numbers);

  pmem::Region& region_;
  Geometry geometry_;
  Parameters parameters_;
  Allocator blocks_;
  Allocator numbers_;
  SpinLock rename_lock_;
  std::vector<InodeLock> locks_;
  std::vector<std::atomic<Group*>> groups_;
  // Of inodes in DRAM: their numbers, and which of them is looked at next when there are too many.
  SpinLock cached_lock_;
  std::vector<std::uint64_t> cached_;
  std::size_t hand_ = 0;
  std::atomic<std::uint64_t> cached_count_{0};
  SpinLock sessions_lock_;
  std::vector<bool> sessions_;
  std::array<std::atomic<std::uint64_t>, kHappened> happened_{};
  std::set<std::uint64_t> sharing_;  // inodes that share blocks with others; does not change
  std::string damage_;
  std::atomic<bool> needs_recovery_{false};  // also after a clean unmount
};

}  // namespace perdura::systems::nova
