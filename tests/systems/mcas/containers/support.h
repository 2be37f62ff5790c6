// An arena with one container of each kind, and a model of what they hold.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "systems/mcas/containers/list.h"
#include "systems/mcas/containers/map.h"
#include "systems/mcas/containers/vector.h"
#include "tests/systems/bucket_hash/explored_memory.h"

namespace perdura::systems::mcas::containers::test {

using perdura::test::ExploredRegion;
using perdura::test::Image;
using perdura::test::PlainMemory;

struct Model {
  std::vector<std::uint64_t> numbers;
  std::map<std::string, std::string> names;
  std::map<std::uint64_t, std::uint64_t> squares;
  std::vector<std::string> lines;

  std::string text() const { return fmt::format("{} {} {} {}", numbers, names, squares, lines); }
  friend bool operator==(const Model&, const Model&) = default;
};

// All containers of an arena, which has been opened.
struct Containers {
  static constexpr Arena::Sizes kSizes{.log = 1024, .roots = 128};
  // Does not begin at the beginning of the memory, and is followed by something.
  static constexpr ByteRange kRange{192, 8 * KiB};
  static constexpr Bytes kMemory = kRange.offset + kRange.length + 64;

  explicit Containers(pmem::Region& region, ByteRange range = kRange)
      : arena(Memory(region, Flushing::lines), range) {}

  Arena arena;
  Vector<std::uint64_t> numbers{arena, 0};
  Map<std::string, std::string> names{arena, 24};
  Map<std::uint64_t, std::uint64_t> squares{arena, 56};
  List<std::string> lines{arena, 88};

  Model contents() const {
    Model all;
    for (std::uint64_t i = 0; i < numbers.size(); ++i) all.numbers.push_back(numbers.get(i));
    names.for_each(
        [&](const std::string& key, const std::string& value) { all.names.emplace(key, value); });
    squares.for_each(
        [&](std::uint64_t key, std::uint64_t value) { all.squares.emplace(key, value); });
    for (auto at = lines.begin(); at != lines.kEnd; at = lines.next(at)) {
      all.lines.push_back(lines.get(at));
    }
    return all;
  }
  std::string audit() const {
    for (const std::string& problem : {names.audit(), squares.audit(), lines.audit()}) {
      if (!problem.empty()) return problem;
    }
    return arena.audit([&](auto visit) {
      numbers.visit_blocks(visit);
      names.visit_blocks(visit);
      squares.visit_blocks(visit);
      lines.visit_blocks(visit);
    });
  }
};

inline void format_in(pmem::Region& region, ByteRange range = Containers::kRange,
                      Arena::Sizes sizes = Containers::kSizes) {
  Arena::format(Memory(region, Flushing::lines), range, sizes);
}

// A change of one container, on both sides. `a` and `b` choose what it is of.
inline void change(Containers& real, Model& model, unsigned kind, std::uint64_t a,
                   std::uint64_t b) {
  const std::string key = fmt::format("key {}", a % 8);
  const std::string text(b % 90, static_cast<char>('a' + a % 26));
  switch (kind % 11) {
    case 0:
    case 1:
      real.numbers.push_back(a);
      model.numbers.push_back(a);
      break;
    case 2:
      if (model.numbers.empty()) break;
      real.numbers.pop_back();
      model.numbers.pop_back();
      break;
    case 3:
      if (model.numbers.empty()) break;
      real.numbers.set(a % model.numbers.size(), b);
      model.numbers[a % model.numbers.size()] = b;
      break;
    case 4:
    case 5:
      real.names.put(key, text);
      model.names[key] = text;
      break;
    case 6:
      EXPECT_EQ(real.names.erase(key), model.names.erase(key) == 1);
      break;
    case 7:
      real.squares.put(a % 20, b);
      model.squares[a % 20] = b;
      break;
    case 8:
      EXPECT_EQ(real.squares.erase(a % 20), model.squares.erase(a % 20) == 1);
      break;
    case 9: {  // before any element, or at the end
      const std::uint64_t index = a % (model.lines.size() + 1);
      auto at = real.lines.begin();
      for (std::uint64_t i = 0; i < index; ++i) at = real.lines.next(at);
      real.lines.insert(at, text);
      model.lines.insert(model.lines.begin() + static_cast<std::ptrdiff_t>(index), text);
      break;
    }
    case 10: {
      if (model.lines.empty()) break;
      const std::uint64_t index = a % model.lines.size();
      auto at = real.lines.begin();
      for (std::uint64_t i = 0; i < index; ++i) at = real.lines.next(at);
      real.lines.erase(at);
      model.lines.erase(model.lines.begin() + static_cast<std::ptrdiff_t>(index));
      break;
    }
  }
}

}  // namespace perdura::systems::mcas::containers::test
