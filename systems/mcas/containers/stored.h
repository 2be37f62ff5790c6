// How containers store their elements: trivially copyable objects as their bytes, strings as the
// range of a block of the arena.
#pragma once

#include <span>
#include <string>
#include <type_traits>

#include "systems/mcas/containers/arena.h"

namespace perdura::systems::mcas::containers {

template <class T>
struct Stored {
  static_assert(std::is_trivially_copyable_v<T>);
  using Form = T;

  static Form keep(Arena&, const T& value) { return value; }
  static void release(Arena&, const Form&) {}
  static T value(const Arena&, const Form& form) { return form; }
  template <class Visit>
  static void visit_blocks(const Form&, Visit) {}
};

template <>
struct Stored<std::string> {
  using Form = ByteRange;  // length 0: no block

  static Form keep(Arena& arena, const std::string& value) {
    if (value.empty()) return {};
    const ByteRange range{arena.allocate(value.size()), value.size()};
    arena.write(range.offset, std::as_bytes(std::span(value)));
    return range;
  }
  static void release(Arena& arena, const Form& form) {
    if (form.length > 0) arena.free(form);
  }
  static std::string value(const Arena& arena, const Form& form) {
    std::string value(form.length, '\0');
    arena.read(form.offset, std::as_writable_bytes(std::span(value)));
    return value;
  }
  template <class Visit>
  static void visit_blocks(const Form& form, Visit visit) {
    if (form.length > 0) visit(form);
  }
};

}  // namespace perdura::systems::mcas::containers
