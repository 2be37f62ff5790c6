// A doubly linked list in an arena. A list whose root is zeros is empty.
#pragma once

#include <optional>
#include <string>

#include "systems/mcas/containers/stored.h"

namespace perdura::systems::mcas::containers {

template <class T>
class List {
  using Form = typename Stored<T>::Form;
  struct Root {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::uint64_t size = 0;
  };
  struct Node {
    std::uint64_t previous = 0;
    std::uint64_t next = 0;
    Form form{};
  };

 public:
  static constexpr Bytes kRootSize = sizeof(Root);
  using Position = Bytes;  // an element's offset, or kEnd, which follows the last one
  static constexpr Position kEnd = 0;

  // `root`: the offset of the list's root in the arena's roots.
  List(Arena& arena, Bytes root) : arena_(&arena), root_at_(arena.root(root, kRootSize)) {}

  std::uint64_t size() const { return root().size; }
  Position begin() const { return root().first; }
  Position last() const { return root().last; }  // kEnd if the list is empty
  Position next(Position position) const { return node(position).next; }
  T get(Position position) const { return Stored<T>::value(*arena_, node(position).form); }

  // Changes; only within a transaction.
  void push_front(const T& value) { insert(begin(), value); }
  void push_back(const T& value) { insert(kEnd, value); }
  // Inserts an element before the one at `before`, and returns its position.
  Position insert(Position before, const T& value) {
    Root now = root();
    Node created{before == kEnd ? now.last : node(before).previous, before,
                 Stored<T>::keep(*arena_, value)};
    const Position position = arena_->allocate(sizeof(Node));
    arena_->write(position, created);
    link(now, created.previous, created.next, position, position);
    ++now.size;
    arena_->write(root_at_, now);
    return position;
  }
  void erase(Position position) {
    Root now = root();
    const Node erased = node(position);
    link(now, erased.previous, erased.next, erased.next, erased.previous);
    --now.size;
    arena_->write(root_at_, now);
    Stored<T>::release(*arena_, erased.form);
    arena_->free({position, sizeof(Node)});
  }

  template <class Visit>
  void visit_blocks(Visit visit) const {
    for (Position at = begin(); at != kEnd; at = next(at)) {
      visit(ByteRange{at, sizeof(Node)});
      Stored<T>::visit_blocks(node(at).form, visit);
    }
  }
  // Returns an inconsistency as a phrase; empty if there is none.
  std::string audit() const {
    const Root now = root();
    std::uint64_t count = 0;
    Position previous = 0;
    for (Position at = now.first; at != kEnd; previous = at, at = next(at)) {
      if (++count > now.size) return "a list has more elements than it counts";
      if (node(at).previous != previous) return "an element of a list has a wrong predecessor";
    }
    if (count != now.size) return "a list has fewer elements than it counts";
    return previous == now.last ? "" : "the last element of a list is another one";
  }

 private:
  Root root() const { return arena_->template read<Root>(root_at_); }
  Node node(Position position) const { return arena_->template read<Node>(position); }
  // `first` and `second` are neighbors; sets the successor of `first` to `next`, and the
  // predecessor of `second` to `previous`.
  void link(Root& root, Position first, Position second, Position next, Position previous) {
    if (first == 0) {
      root.first = next;
    } else {
      arena_->write(first + offsetof(Node, next), next);
    }
    if (second == kEnd) {
      root.last = previous;
    } else {
      arena_->write(second + offsetof(Node, previous), previous);
    }
  }

  Arena* arena_;
  Bytes root_at_;
};

}  // namespace perdura::systems::mcas::containers
