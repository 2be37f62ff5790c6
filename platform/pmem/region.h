// A region: a contiguous range of persistent memory (or of DRAM) of one node, reachable by its CPUs
// through this class and by one-sided operations once it is registered (platform/fabric).
//
// Every access goes through a region. So stores are counted, and on `sim` accesses take simulated
// time, become visible to remote readers at the right moment, and are reported to the persistence
// model. On mapped memory an access is just the instruction itself.
//
// Offsets are in bytes from the start of the region. An access outside the region is a programming
// error and throws std::out_of_range, so that an exploration of a system can report where it
// happened; other code should not catch it. Words are 8 bytes, aligned.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "platform/base/units.h"
#include "platform/pmem/accounting.h"
#include "platform/pmem/model/persistence.h"

namespace perdura::pmem {

// The interface to memory that is modelled instead of simply mapped (platform/pmem/sim). The
// functions correspond to those of Region.
class RegionModel {
 public:
  virtual ~RegionModel() = default;
  virtual std::uint64_t load(Bytes offset) = 0;
  // A model without timing need not override these.
  virtual std::uint64_t load_from_memory(Bytes offset) { return load(offset); }
  virtual void scan(Bytes, Bytes) {}
  virtual void read(Bytes offset, std::span<std::byte> into) = 0;
  virtual void store(Bytes offset, std::uint64_t value, const WordLayout& layout) = 0;
  virtual bool compare_exchange(Bytes offset, std::uint64_t& expected, std::uint64_t desired) = 0;
  virtual void write(Bytes offset, std::span<const std::byte> from, bool streaming) = 0;
  virtual void flush(Bytes offset, Bytes length) = 0;
  virtual void drain() = 0;
};

// The implementation of flush() and drain() for a mapped file on a disk.
class WriteBack {
 public:
  virtual ~WriteBack() = default;
  virtual void begin(Bytes offset, Bytes length) = 0;
  // Waits until the disk has everything for which begin() was called.
  virtual void finish() = 0;
};

// The write meter of the calling operating-system thread, for mapped persistent memory.
namespace detail {
inline constinit thread_local WriteMeter thread_write_meter;
}
inline WriteMeter& thread_write_meter() { return detail::thread_write_meter; }

enum class Durable : std::uint8_t {
  when_flushed,  // durable after a flush and a fence
  when_visible,  // the caches are in the persistence domain (eADR), so flushes are unnecessary
};

class Region {
 public:
  // `durable`: when a store to mapped persistent memory is durable. `disk`: null unless the region
  // is a mapped file on a disk.
  Region(std::string name, Medium medium, std::byte* base, Bytes size,
         std::shared_ptr<RegionModel> model, std::shared_ptr<void> mapping,
         Durable durable = Durable::when_flushed, std::shared_ptr<WriteBack> disk = nullptr)
      : name_(std::move(name)),
        base_(base),
        size_(size),
        model_(std::move(model)),
        mapping_(std::move(mapping)),
        disk_(std::move(disk)),
        medium_(medium),
        needs_flush_(medium == Medium::pm && durable == Durable::when_flushed) {}
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  const std::string& name() const { return name_; }
  Bytes size() const { return size_; }
  Medium medium() const { return medium_; }

  // The memory itself, for buffers that only this thread and its own operations use. Accesses
  // through this pointer are neither counted nor known to any model; use pmem/view.h for memory
  // whose accesses matter.
  std::byte* data() { return base_; }

  // --- loads -----------------------------------------------------------------------------------

  // An 8-byte load, atomic with respect to stores and one-sided operations, with acquire order.
  std::uint64_t load(Bytes offset) const {
    check(offset, kWord);
    if (model_) [[unlikely]]
      return model_->load(offset);
    return std::atomic_ref(word(offset)).load(std::memory_order_acquire);
  }

  // Loads a word whose line is in no cache, which the caller must have ensured. `sim` models no
  // cache contents, so it must be told that the load misses. For probes.
  std::uint64_t load_from_memory(Bytes offset) const {
    check(offset, kWord);
    if (model_) [[unlikely]]
      return model_->load_from_memory(offset);
    return std::atomic_ref(word(offset)).load(std::memory_order_acquire);
  }

  // Loads several words atomically, each by itself, in order. All offsets are checked first.
  template <std::size_t N>
  std::array<std::uint64_t, N> load_each(const std::array<Bytes, N>& offsets) const {
    // Unrolled, so that words that are not accessed by a variable index stay in registers.
    std::array<std::uint64_t, N> words;
    if (model_) [[unlikely]] {
#pragma GCC unroll 8
      for (std::size_t i = 0; i < N; ++i) words[i] = load(offsets[i]);
      return words;
    }
    check(*std::max_element(offsets.begin(), offsets.end()), kWord);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < N; ++i) {
      words[i] = std::atomic_ref(word(offsets[i])).load(std::memory_order_acquire);
    }
    return words;
  }

  // Loads whole lines that are in no cache, in the order of addresses, and returns only the sum of
  // their words (0 on `sim`). This measures read bandwidth without the cost of a copy. The lines
  // must not be written meanwhile. For probes.
  std::uint64_t scan(Bytes offset, Bytes length) const;

  // 8-byte loads of adjacent words, in order. Word i of the result is meaningful only if `needed(i,
  // words)` returns true; it is passed the words before i. On mapped memory, all words are loaded
  // without calling it, which is faster.
  template <std::size_t N, class Needed>
  std::array<std::uint64_t, N> load_words(Bytes offset, Needed needed) const {
    check(offset, N * kWord);
    if (!model_) [[likely]]
      return mapped_words<N>(offset);
    std::array<std::uint64_t, N> words{};
    for (std::size_t i = 0; i < N; ++i) {
      if (needed(i, words)) words[i] = model_->load(offset + i * kWord);
    }
    return words;
  }

  // Copies a range out of the region. Only the aligned words are atomic, so the copy may be torn.
  void read(Bytes offset, std::span<std::byte> into) const;
  // Like read(), for a range that is not written meanwhile, which the caller must ensure: without
  // the order of words, large ranges are copied in half of the time.
  void read_unchanging(Bytes offset, std::span<std::byte> into) const {
    check(offset, into.size());
    if (model_) [[unlikely]]
      return model_->read(offset, into);
    if (!into.empty()) std::memcpy(into.data(), base_ + offset, into.size());
  }

  template <class T>
  requires std::is_trivially_copyable_v<T> T read_object(Bytes offset)
  const {
    if constexpr (sizeof(T) % kWord == 0 && sizeof(T) <= kCacheLine) {
      // Fast path: small objects of whole words are read without a function call.
      if (!model_ && offset % kWord == 0) [[likely]] {
        check(offset, sizeof(T));
        return std::bit_cast<T>(mapped_words<sizeof(T) / kWord>(offset));
      }
    }
    return read_copy<T>(offset);
  }

  // Prefetches the line at `offset` into the caches.
  void prefetch(Bytes offset) const {
    // Not __builtin_prefetch(): the compiler assumes that a function that does nothing else has no
    // effect, and removes calls of it.
    asm volatile("prefetcht0 %0" : : "m"(base_[offset]));
  }

  // --- stores ----------------------------------------------------------------------------------

  // An 8-byte store: failure-atomic, visible at once as a whole, with release order.
  void store(Bytes offset, std::uint64_t value, const WordLayout& layout = kWholeWord) {
    check(offset, kWord);
    if (model_) [[unlikely]]
      return model_->store(offset, value, layout);
    std::atomic_ref target(word(offset));
    if (medium_ == Medium::pm) {
      thread_write_meter().word(Cause::local_store, target.load(std::memory_order_relaxed), value,
                                layout);
    }
    target.store(value, std::memory_order_release);
  }

  // Compare-and-swap: if the word equals `expected`, atomically replaces it by `desired` and
  // returns true; otherwise loads the word into `expected` and returns false.
  bool compare_exchange(Bytes offset, std::uint64_t& expected, std::uint64_t desired);

  // Writes a range by ordinary (cached) stores.
  void write(Bytes offset, std::span<const std::byte> from);
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void write_object(Bytes offset, const T& object) {
    write(offset, std::as_bytes(std::span(&object, 1)));
  }

  // Writes a range by non-temporal stores: they bypass the caches and are in the write-pending
  // queue after the next drain(), without a flush.
  void write_streaming(Bytes offset, std::span<const std::byte> from);

  // Fills whole lines with a constant by non-temporal stores. This measures write bandwidth without
  // the cost of reading the data that is written. For probes.
  void fill_streaming(Bytes offset, Bytes length);

  // --- persistence -----------------------------------------------------------------------------

  // Starts writing back the lines of a range (clwb, clflushopt or clflush, depending on the CPU).
  // Where stores are durable as soon as they are visible, the flush is counted, so that counts can
  // be compared, but not executed. For a file on a disk, writes back its pages, as
  // sync_file_range(2).
  void flush(Bytes offset, Bytes length);
  // Waits until everything that this thread flushed or streamed before is in the persistence domain
  // (sfence). For a file on a disk, waits until the disk has everything that any thread flushed
  // before, as fdatasync(2).
  void drain();
  void persist(Bytes offset, Bytes length) {
    flush(offset, length);
    drain();
  }

  // The owner of the mapped memory. It expires when the region is destroyed, so that others can
  // find out whether the region still exists.
  std::weak_ptr<void> mapping() const { return mapping_; }

  RegionModel* model() const { return model_.get(); }
  std::shared_ptr<RegionModel> shared_model() const { return model_; }

 private:
  // A function of its own, so that small objects, whose address is then never taken, can be in
  // registers.
  template <class T>
  [[gnu::noinline]] T read_copy(Bytes offset) const {
    T object;
    read(offset, std::as_writable_bytes(std::span(&object, 1)));
    return object;
  }
  void check([[maybe_unused]] Bytes offset, [[maybe_unused]] Bytes length) const {
    if (offset > size_ || length > size_ - offset) [[unlikely]]
      out_of_range(offset, length);
  }
  template <std::size_t N>
  std::array<std::uint64_t, N> mapped_words(Bytes offset) const {
    std::uint64_t* const first = &word(offset);
    std::array<std::uint64_t, N> words;
#pragma GCC unroll 8
    for (std::size_t i = 0; i < N; ++i) {
      words[i] = std::atomic_ref(first[i]).load(std::memory_order_acquire);
    }
    return words;
  }
  void flush_for_nothing(Bytes offset, Bytes length);
  [[noreturn]] void out_of_range(Bytes offset, Bytes length) const;
  std::uint64_t& word(Bytes offset) const {
    assert(offset % kWord == 0);
    return *reinterpret_cast<std::uint64_t*>(base_ + offset);
  }

  std::string name_;
  std::byte* base_;
  Bytes size_;
  std::shared_ptr<RegionModel> model_;
  std::shared_ptr<void> mapping_;
  std::shared_ptr<WriteBack> disk_;
  Medium medium_;
  bool needs_flush_;
};

}  // namespace perdura::pmem
