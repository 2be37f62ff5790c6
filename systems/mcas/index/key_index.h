// The secondary index of a pool: its keys in order, for searches (MCAS, section 3.3: IKVIndex). It
// is in DRAM and holds keys only: its owner reports each key that is inserted or erased, and fills
// the index again after a restart. Used by one thread only.
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
    more,     // none so far; call again with `position`
    invalid,  // the expression is not a valid regular expression
  };

  Outcome outcome = Outcome::not_found;
  Key key{};                   // the key found; valid until the next change
  std::uint64_t position = 0;  // the key's number in the order of all keys
};

class KeyIndex {
 public:
  virtual ~KeyIndex() = default;

  // Returns false if the key was there already (insert) or was not there (erase).
  virtual bool insert(Key key) = 0;
  virtual bool erase(Key key) = 0;
  virtual std::uint64_t count() const = 0;

  // Finds the first key at `position` or after it that matches. Keys are ordered by their bytes.
  //
  //   exact               the key is the expression
  //   prefix              it begins with the expression
  //   regular_expression  all of it matches, byte by byte; the syntax is that of RE2
  //   next                it is greater than the expression; if that is empty, any key is
  //
  // Only regular expressions are compared with one key after the other. The number of comparisons
  // per call is limited, so that other tasks do not wait long; `more` reports that keys are left.
  // The time of a comparison is at most proportional to the lengths of the expression and the key.
  virtual FindResult find(std::string_view expression, Match match,
                          std::uint64_t position) const = 0;
};

// Makes the index with this name, empty; null if there is none. "VolatileTree" is ordered, and
// finds a key, or the key at a position, in logarithmic time.
std::unique_ptr<KeyIndex> make_index(std::string_view name);

}  // namespace perdura::systems::mcas::index
