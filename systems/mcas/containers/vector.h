// An array in an arena that grows by doubling. A vector whose root is zeros is empty.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "systems/mcas/containers/stored.h"

namespace perdura::systems::mcas::containers {

template <class T>
class Vector {
  using Form = typename Stored<T>::Form;
  struct Root {
    std::uint64_t elements = 0;  // the offset of their block
    std::uint64_t capacity = 0;
    std::uint64_t size = 0;
  };

 public:
  static constexpr Bytes kRootSize = sizeof(Root);

  // `root`: the offset of the vector's root in the arena's roots.
  Vector(Arena& arena, Bytes root) : arena_(&arena), root_at_(arena.root(root, kRootSize)) {}

  std::uint64_t size() const { return root().size; }
  bool empty() const { return size() == 0; }
  // Throws std::out_of_range unless the index is below size().
  T get(std::uint64_t index) const { return Stored<T>::value(*arena_, form(root(), index)); }

  // Changes; only within a transaction.
  void set(std::uint64_t index, const T& value) {
    const Root now = root();
    Stored<T>::release(*arena_, form(now, index));
    arena_->write(offset_of(now, index), Stored<T>::keep(*arena_, value));
  }
  void push_back(const T& value) {
    Root now = root();
    if (now.size == now.capacity) grow(now);
    arena_->write(now.elements + now.size * sizeof(Form), Stored<T>::keep(*arena_, value));
    ++now.size;
    arena_->write(root_at_, now);
  }
  void pop_back() {
    Root now = root();
    Stored<T>::release(*arena_, form(now, now.size - 1));
    --now.size;
    arena_->write(root_at_, now);
  }
  void clear() {
    const Root now = root();
    for (std::uint64_t i = 0; i < now.size; ++i) Stored<T>::release(*arena_, form(now, i));
    if (now.capacity > 0) arena_->free(block(now));
    arena_->write(root_at_, Root{});
  }

  template <class Visit>
  void visit_blocks(Visit visit) const {
    const Root now = root();
    if (now.capacity > 0) visit(block(now));
    for (std::uint64_t i = 0; i < now.size; ++i) Stored<T>::visit_blocks(form(now, i), visit);
  }

 private:
  Root root() const { return arena_->template read<Root>(root_at_); }
  static ByteRange block(const Root& root) { return {root.elements, root.capacity * sizeof(Form)}; }
  static Bytes offset_of(const Root& root, std::uint64_t index) {
    if (index >= root.size) throw std::out_of_range("an index outside of a vector");
    return root.elements + index * sizeof(Form);
  }
  Form form(const Root& root, std::uint64_t index) const {
    return arena_->template read<Form>(offset_of(root, index));
  }
  void grow(Root& root) {
    const ByteRange before = block(root);
    std::vector<std::byte> elements(before.length);
    arena_->read(before.offset, elements);
    root.capacity = std::max<std::uint64_t>(4, 2 * root.capacity);
    root.elements = arena_->allocate(root.capacity * sizeof(Form));
    arena_->write(root.elements, elements);
    if (before.length > 0) arena_->free(before);
  }

  Arena* arena_;
  Bytes root_at_;
};

}  // namespace perdura::systems::mcas::containers
