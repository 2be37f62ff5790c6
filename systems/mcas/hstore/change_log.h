// The record that hstore writes before it changes its table, if its heap is persistent: a restart
// then completes or undoes the one change that a failure interrupted, and examines no others. Each
// change allocates or frees at most two objects of the heap.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "systems/mcas/hstore/layout.h"
#include "systems/mcas/storage/heap.h"

namespace perdura::systems::mcas::hstore {

// An object of offset 0, where there is no heap, stands for none.
using Objects = std::array<ByteRange, 2>;

struct TableChange {
  // The kinds, with what a change does to its objects: first those allocated for it, then those
  // that are free after it.
  enum class Kind : std::uint8_t {
    none,
    insert,  // allocates the key and the value
    update,  // allocates the new value, frees the old one
    erase,   // frees the key and the value
    move,    // moves an item to make room
    grow,    // allocates the segment
  };

  Kind kind = Kind::none;
  EntryNumber home = 0;  // the item's; its entry is `distance` further on, after a move
  std::uint32_t distance = 0;
  // The state before the change: which value is the item's, the distance of an item that moves, or
  // the number of segments.
  std::uint32_t before = 0;
  std::uint64_t items = 0;  // number of items in the table before the change
  Objects objects{};

  std::span<const ByteRange> allocated() const {
    const bool one = kind == Kind::update || kind == Kind::grow;
    return std::span(objects).first(kind == Kind::insert ? 2 : one ? 1 : 0);
  }
  std::span<const ByteRange> freed() const {
    return std::span(objects).last(kind == Kind::erase ? 2 : kind == Kind::update ? 1 : 0);
  }
};

class ChangeLog {
 public:
  virtual ~ChangeLog() = default;

  // The bytes that it needs after the table's root, at a multiple of a cache line.
  virtual Bytes size() const = 0;
  // Initializes the log of an empty pool: the log's data is at `offset`, and `objects` are the ones
  // that are allocated. Everything is durable when it returns.
  virtual void create(Bytes offset, std::span<const ByteRange> objects) = 0;

  // Must be called before the first store of a change. When it returns, the record is durable, and
  // so is everything flushed before the call; the allocation of its objects is flushed only.
  virtual void begin(const TableChange& change) = 0;
  // Must be called when a change has happened and is durable. The objects that it frees are durably
  // free when this returns.
  virtual void finish(const TableChange& change) = 0;

  // After a restart: returns the last change that was begun.
  virtual TableChange recover(Bytes offset) = 0;
  // Completes the last change if it has `happened`, according to the table, or undoes it. Tells the
  // heap, all of whose memory is free so far, which objects are allocated.
  virtual void settle(const TableChange& last, bool happened, Heap& heap) = 0;

  // Returns an inconsistency, given that these are all objects, as a phrase; empty if there is
  // none.
  virtual std::string audit(const std::vector<ByteRange>& objects) const = 0;
};

}  // namespace perdura::systems::mcas::hstore
