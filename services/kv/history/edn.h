// Reads EDN (extensible data notation), the notation of Clojure's data in which Jepsen writes
// histories, as far as histories need it: a tag such as #jepsen.history.Op is skipped, and its
// value stands for both.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace perdura::history {

struct Edn {
  enum class Kind : std::uint8_t {
    nil,
    scalar,  // a number, a truth value, a keyword, a symbol or a character, as it is written
    text,    // a string
    list,    // a vector, a list or a set
    map,     // its elements are keys and values in turn
  };
  Kind kind = Kind::nil;
  std::string word{};  // a scalar, with a keyword's colon; or a text, without quotes and escapes
  std::vector<Edn> elements{};
  std::size_t line = 1;

  bool is_nil() const { return kind == Kind::nil; }
  bool is_list(std::size_t size) const { return kind == Kind::list && elements.size() == size; }
  // The value of a key such as ":process" in a map; null if there is none.
  const Edn* find(std::string_view key) const;
  // One notation for equal values: 5N and 5 are the same.
  std::string canonical() const;
};

// Calls `use` for each value of the text. Throws UsageError, which begins with "line N: ", if the
// text is not EDN or is nested deeper than 100.
void for_each_edn(std::string_view text, const std::function<void(const Edn&)>& use);

}  // namespace perdura::history
