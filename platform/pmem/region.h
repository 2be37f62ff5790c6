// A region: a contiguous range of persistent memory (or of DRAM) of one node, reachable by its CPUs
// through this class and by one-sided operations once it is registered (platform/fabric).
//
// Every access goes through a region, so that stores are counted, and so that on `sim` they cost
// time, become visible to remote readers when they would, and are known to the persistence model.
// On mapped memory an access is the instruction itself.
//
// Offsets are in bytes from the start of the region. An access outside the region is a programming
// error and ends the process. Words are 8 bytes, aligned.
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

// How a kind of memory that is not simply mapped handles accesses (platform/pmem/sim).
class RegionModel {
 public:
  virtual ~RegionModel() = default;
  virtual std::uint64_t load(Bytes offset) = 0;
  // A model that knows no time need not tell these from load().
  virtual std::uint64_t load_from_memory(Bytes offset) { return load(offset); }
  virtual void scan(Bytes, Bytes) {}
  virtual void read(Bytes offset, std::span<std::byte> into) = 0;
  virtual void store(Bytes offset, std::uint64_t value, const WordLayout& layout) = 0;
  virtual bool compare_exchange(Bytes offset, std::uint64_t& expected, std::uint64_t desired) = 0;
  virtual void write(Bytes offset, std::span<const std::byte> from, bool streaming) = 0;
  virtual void flush(Bytes offset, Bytes length) = 0;
  virtual void drain() = 0;
};

// Write accounting of mapped persistent memory, per operating-system thread.
namespace detail {
inline constinit thread_local WriteMeter thread_write_meter;
}
inline WriteMeter& thread_write_meter() { return detail::thread_write_meter; }

enum class Durable : std::uint8_t {
  when_flushed,  // and fenced
  when_visible,  // the caches are in the persistence domain (eADR): a flush would be for nothing
};

class Region {
 public:
  // `durable`: what a store to mapped persistent memory needs to be durable.
  Region(std::string name, Medium medium, std::byte* base, Bytes size,
         std::shared_ptr<RegionModel> model, std::shared_ptr<void> mapping,
         Durable durable = Durable::when_flushed)
      : name_(std::move(name)),
        base_(base),
        size_(size),
        model_(std::move(model)),
        mapping_(std::move(mapping)),
        medium_(medium),
        needs_flush_(medium == Medium::pm && durable == Durable::when_flushed) {}
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  const std::string& name() const { return name_; }
  Bytes size() const { return size_; }
  Medium medium() const { return medium_; }

  // The memory itself, for buffers that only this thread and its own operations use. What is done
  // to it is not counted and no model knows of it; for memory that is judged there is pmem/view.h.
  std::byte* data() { return base_; }

  // --- loads -----------------------------------------------------------------------------------

  // An 8-byte load, atomic with respect to stores and one-sided operations, with acquire order.
  std::uint64_t load(Bytes offset) const {
    check(offset, kWord);
    if (model_) [[unlikely]]
      return model_->load(offset);
    return std::atomic_ref(word(offset)).load(std::memory_order_acquire);
  }

  // The same of a word whose line no cache holds, as the caller has seen to: `sim` has no caches,
  // so it must be told. For probes.
  std::uint64_t load_from_memory(Bytes offset) const {
    check(offset, kWord);
    if (model_) [[unlikely]]
      return model_->load_from_memory(offset);
    return std::atomic_ref(word(offset)).load(std::memory_order_acquire);
  }

  // Atomic loads of several words, in order; all are checked before the first.
  template <std::size_t N>
  std::array<std::uint64_t, N> load_each(const std::array<Bytes, N>& offsets) const {
    // Unrolled, so that what is not looked at by its number stays in registers.
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

  // Loads whole lines that no cache holds, in the order of addresses, and keeps nothing but the sum
  // of their words (0 on `sim`): what memory can deliver, without the cost of a copy. Nobody may
  // write them meanwhile. For probes.
  std::uint64_t scan(Bytes offset, Bytes length) const;

  // 8-byte loads of adjacent words, in order. Word i may be anything unless `needed(i, words)`,
  // which is told the words before it: memory itself is read faster without asking.
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

  // A copy of a range. Only its aligned words are atomic, so it may be torn.
  void read(Bytes offset, std::span<std::byte> into) const;

  template <class T>
  requires std::is_trivially_copyable_v<T> T read_object(Bytes offset)
  const {
    if constexpr (sizeof(T) % kWord == 0 && sizeof(T) <= kCacheLine) {
      // Small objects of whole words are read without a call.
      if (!model_ && offset % kWord == 0) [[likely]] {
        check(offset, sizeof(T));
        return std::bit_cast<T>(mapped_words<sizeof(T) / kWord>(offset));
      }
    }
    return read_copy<T>(offset);
  }

  // A hint that this line will be read soon.
  void prefetch(Bytes offset) const {
    // Not __builtin_prefetch(): a function that does nothing else is taken to have no effect, and
    // its calls are removed.
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

  // Replaces `expected` by `desired` atomically, or loads the word into `expected`.
  bool compare_exchange(Bytes offset, std::uint64_t& expected, std::uint64_t desired);

  // Ordinary stores of a range.
  void write(Bytes offset, std::span<const std::byte> from);
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void write_object(Bytes offset, const T& object) {
    write(offset, std::as_bytes(std::span(&object, 1)));
  }

  // Non-temporal stores of a range: they bypass the caches and are in the write-pending queue after
  // the next drain, without a flush.
  void write_streaming(Bytes offset, std::span<const std::byte> from);

  // The same of whole lines that are all alike: what memory can take, without the cost of reading
  // what is written. For probes.
  void fill_streaming(Bytes offset, Bytes length);

  // --- persistence -----------------------------------------------------------------------------

  // Starts writing back the lines of a range (clwb, clflushopt or clflush, by CPU). Where memory is
  // durable when it is visible it is counted, so that counts can be compared, and not executed.
  void flush(Bytes offset, Bytes length);
  // Waits until everything flushed or streamed before is in the persistence domain (sfence).
  void drain();
  void persist(Bytes offset, Bytes length) {
    flush(offset, length);
    drain();
  }

  RegionModel* model() const { return model_.get(); }
  std::shared_ptr<RegionModel> shared_model() const { return model_; }

 private:
  // Apart, so that small objects, whose address nobody takes, can be in registers.
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
  Medium medium_;
  bool needs_flush_;
};

}  // namespace perdura::pmem
