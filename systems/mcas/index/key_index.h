// The secondary index of a pool: its keys in order, to be searched for (MCAS, section 3.3:
// IKVIndex). It is in DRAM and holds keys only: whoever owns it tells it of each key that comes or
// goes, and fills it anew after a restart. Used by one thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "services/objects/objects.h"

namespace perdura::systems::mcas::index {

using objects::Key;
using objects::Match;

struct FindResult {
  enum class Outcome : std::uint8_t {
    found,
    not_found,
    more,     // none so far: ask again from `position` on
    invalid,  // the expression is no regular expression
  };

  Outcome outcome = Outcome::not_found;
  Key key{};                   // that was found; until the next change
  std::uint64_t position = 0;  // of that key, by which all keys are numbered in their order
};

class KeyIndex {
 public:
  virtual ~KeyIndex() = default;

  // False if the key was there, or was not.
  virtual bool insert(Key key) = 0;
  virtual bool erase(Key key) = 0;
  virtual std::uint64_t count() const = 0;

  // The first key at `position` or behind it that matches. Keys are ordered by their bytes.
  //
  //   exact               the key is the expression
  //   prefix              it begins with the expression
  //   regular_expression  all of it matches, byte by byte; the syntax is that of RE2
  //   next                it is greater than the expression; if that is empty, any key is
  //
  // Only regular expressions are compared with one key after the other, with so many in one call
  // that others do not wait long; `more` says that some are left. No expression takes longer than
  // in proportion to its length and the keys'.
  virtual FindResult find(std::string_view expression, Match match,
                          std::uint64_t position) const = 0;
};

// The index with this name, empty; null if there is none. "VolatileTree" is ordered, and finds a
// key, or the one at a position, in logarithmic time.
std::unique_ptr<KeyIndex> make_index(std::string_view name);

}  // namespace perdura::systems::mcas::index
