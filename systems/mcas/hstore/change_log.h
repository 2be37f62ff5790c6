// What hstore writes down before it changes its table, if its heap is to be persistent: then a
// restart finishes or undoes the change that a failure interrupted, and looks at no others. Each
// change takes or gives back at most two objects of the heap.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "systems/mcas/hstore/layout.h"
#include "systems/mcas/storage/heap.h"

namespace perdura::systems::mcas::hstore {

// No object, if its offset is 0, where no heap is.
using Objects = std::array<Place, 2>;

struct Change {
  // With the objects: what is allocated for it, and then what is free when it has happened.
  enum class Kind : std::uint8_t {
    none,
    insert,  // allocates the key and the value
    update,  // allocates the new value, frees the old one
    erase,   // frees the key and the value
    move,    // of an item that makes room
    grow,    // allocates the segment
  };

  Kind kind = Kind::none;
  EntryNumber home = 0;        // of the item; its entry is `distance` behind it, after a move
  std::uint32_t distance = 0;  //
  // Before the change: which of its values is that of an item, the distance of one that moves, or
  // the number of segments.
  std::uint32_t before = 0;
  std::uint64_t items = 0;  // in the table, before the change
  Objects objects{};

  std::span<const Place> allocated() const {
    const bool one = kind == Kind::update || kind == Kind::grow;
    return std::span(objects).first(kind == Kind::insert ? 2 : one ? 1 : 0);
  }
  std::span<const Place> freed() const {
    return std::span(objects).last(kind == Kind::erase ? 2 : kind == Kind::update ? 1 : 0);
  }
};

class ChangeLog {
 public:
  virtual ~ChangeLog() = default;

  // The bytes that it needs behind the root of the table, at a multiple of a line.
  virtual Bytes size() const = 0;
  // For an empty pool: its own data lies at `offset`, and these objects are allocated. All of it is
  // durable when it returns.
  virtual void create(Bytes offset, std::span<const Place> objects) = 0;

  // Before the first store of a change: the change is durable when this returns, and so is what was
  // flushed before it; that its objects are allocated is flushed.
  virtual void begin(const Change& change) = 0;
  // When a change has happened and is durable: what it frees is durably free.
  virtual void finish(const Change& change) = 0;

  // After a restart: the last change that began.
  virtual Change recover(Bytes offset) = 0;
  // Which has happened, or never will, as the table says. Tells the heap, whose memory is all free,
  // which objects are allocated.
  virtual void settle(const Change& last, bool happened, Heap& heap) = 0;

  // What contradicts itself if these are all objects, as a phrase; empty if nothing does.
  virtual std::string audit(const std::vector<Place>& objects) const = 0;
};

}  // namespace perdura::systems::mcas::hstore
