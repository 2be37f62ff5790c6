// A typed view of a range of a region: like std::span, it gives access to elements by apparently
// plain loads and stores. Every access goes through the region. So it is counted, and on `sim` it
// takes time, becomes visible at the right moment, and is reported to the persistence model. Thus
// the accesses of an application to memory that a system has mapped for it (DAX), and its syncs
// (msync), are checked like any other write.
//
//   pmem::View<std::uint64_t> keys(region, offset, 1024);
//   if (keys[3] != key) keys[3] = key;
//   keys.persist(3, 1);
//
// An aligned element of 8 bytes is loaded and stored atomically, as a word of the region; an
// aligned element of 1, 2 or 4 bytes is loaded atomically. All other accesses are copies: they may
// be torn, both for a concurrent reader and after a power failure. Nothing is cached: load an
// element once if it is needed twice.
//
// Elements are counted from 0. An access outside the view is a programming error and ends the
// process.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <span>
#include <type_traits>

#include "platform/pmem/region.h"

namespace perdura::pmem {

namespace detail {
[[noreturn]] void outside_view(const Region& region, Bytes offset, std::size_t first,
                               std::size_t count, std::size_t size);
}

template <class T>
requires std::is_trivially_copyable_v<T>
class View {
 public:
  // A view of `count` elements from `offset` on, which must be aligned for T. The region must
  // outlive the view.
  View(Region& region, Bytes offset, std::size_t count)
      : region_(&region), offset_(offset), size_(count) {
    const bool fits = offset <= region.size() && count <= (region.size() - offset) / sizeof(T);
    if (!fits || offset % alignof(T) != 0) [[unlikely]]
      detail::outside_view(region, offset, 0, count, 0);
  }
  // A view of the whole region: as many elements as fit.
  explicit View(Region& region) : View(region, 0, region.size() / sizeof(T)) {}

  Region& region() const { return *region_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // The offset of an element in the region; `index` may be size(), for the end of the view.
  Bytes offset_of(std::size_t index) const { return offset_ + index * sizeof(T); }

  // --- elements --------------------------------------------------------------------------------

  T load(std::size_t index) const {
    check(index, 1);
    const Bytes at = offset_of(index);
    if constexpr (kInWord) {
      const Bytes word = at / kWord * kWord;
      if (word + kWord <= region_->size()) [[likely]] {
        const auto bytes = std::bit_cast<std::array<std::byte, kWord>>(region_->load(word));
        std::array<std::byte, sizeof(T)> mine;
        std::copy_n(bytes.begin() + at % kWord, sizeof(T), mine.begin());
        return std::bit_cast<T>(mine);
      }
    }
    return region_->template read_object<T>(at);
  }
  void store(std::size_t index, const T& value) const {
    check(index, 1);
    if constexpr (kInWord && sizeof(T) == kWord) {
      region_->store(offset_of(index), std::bit_cast<std::uint64_t>(value));
    } else {
      region_->write_object(offset_of(index), value);
    }
  }

  // A reference to an element: converting it to T loads the element, assigning to it stores the
  // element.
  class Reference {
   public:
    operator T() const { return view_.load(index_); }
    const Reference& operator=(const T& value) const {
      view_.store(index_, value);
      return *this;
    }
    const Reference& operator=(const Reference& other) const { return *this = T(other); }
    Reference(const Reference&) = default;

   private:
    friend class View;
    Reference(const View& view, std::size_t index) : view_(view), index_(index) {}
    View view_;
    std::size_t index_;
  };
  Reference operator[](std::size_t index) const { return {*this, index}; }

  // Iterates over the elements' values, in order.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = T;
    T operator*() const { return view_.load(index_); }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++index_;
      return before;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.index_ == b.index_; }

   private:
    friend class View;
    Iterator(const View& view, std::size_t index) : view_(view), index_(index) {}
    View view_;
    std::size_t index_;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size_}; }

  View subview(std::size_t first, std::size_t count) const {
    check(first, count);
    return View(*region_, offset_of(first), count);
  }

  // --- ranges: one access, as a memcpy() or memset() -------------------------------------------

  void read(std::size_t first, std::span<T> into) const {
    check(first, into.size());
    region_->read(offset_of(first), std::as_writable_bytes(into));
  }
  void write(std::size_t first, std::span<const T> from) const {
    check(first, from.size());
    region_->write(offset_of(first), std::as_bytes(from));
  }
  void fill(std::size_t first, std::size_t count, const T& value) const {
    check(first, count);
    std::array<T, std::max<std::size_t>(1, kCacheLine * 16 / sizeof(T))> piece;
    piece.fill(value);
    for (std::size_t done = 0; done < count; done += piece.size()) {
      write(first + done, std::span<const T>(piece).first(std::min(piece.size(), count - done)));
    }
  }

  // --- persistence: what was stored before is durable when drain() or persist() returns ---------

  void flush(std::size_t first, std::size_t count) const {
    check(first, count);
    region_->flush(offset_of(first), count * sizeof(T));
  }
  void drain() const { region_->drain(); }
  void persist(std::size_t first, std::size_t count) const {
    flush(first, count);
    drain();
  }

 private:
  // True if an element always lies within one word of the region.
  static constexpr bool kInWord = sizeof(T) <= kWord && sizeof(T) == alignof(T);

  void check(std::size_t first, std::size_t count) const {
    if (first > size_ || count > size_ - first) [[unlikely]]
      detail::outside_view(*region_, offset_, first, count, size_);
  }

  Region* region_;
  Bytes offset_;
  std::size_t size_;
};

}  // namespace perdura::pmem
