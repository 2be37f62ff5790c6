// The sequential specification of the pools of a shard: which pools exist, and the values of their
// keys. A value consists of 64-bit words, of which the last one may be partial. A write into a part
// of a value begins and ends at whole words, so a failure leaves each word new or old.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "services/linearizability.h"
#include "services/objects/objects.h"

namespace perdura::services {

struct ObjectsSpecification {
  using Words = std::vector<std::uint64_t>;
  // The words of some bytes. A partial last word is marked with its number of bytes, so that values
  // of different lengths differ.
  static Words words_of(std::span<const std::byte> bytes);
  // The number of bytes of a word that is marked as partial; 0 for a whole one.
  static std::size_t bytes_in_part(std::uint64_t word);
  static std::size_t whole_words(const Words& words) {
    return words.empty() || bytes_in_part(words.back()) == 0 ? words.size() : words.size() - 1;
  }
  struct Value {
    Words words;  // empty: the key does not exist
    // For each word: the other contents that it may have, because interrupted writes into a part
    // may have stored them and no get has read the value since.
    std::vector<Words> perhaps;
    auto operator<=>(const Value&) const = default;
  };
  struct Pool {
    bool there = false;
    std::vector<Value> values;  // by key
    auto operator<=>(const Pool&) const = default;
  };
  using State = std::vector<Pool>;

  struct Operation {
    enum class Kind : std::uint8_t { create, open, remove, put, put_part, get, erase };
    Kind kind = Kind::get;
    std::size_t pool = 0;
    std::size_t key = 0;
    bool direct = false;                    // whether a put or a get is direct
    std::size_t first = 0;                  // the first word of a part
    Words words{};                          // those put, or found by a get
    std::optional<objects::Error> error{};  // the error with which it ended
  };

  std::size_t pools = 0;
  std::size_t keys = 0;  // number in each pool

  State initial() const { return State(pools); }
  std::vector<State> after(const State& state, const Operation& operation, bool answered) const;
  std::vector<State> after_failure(const State& state) const { return {state}; }

  bool changes(const Operation& operation) const;
  std::string text(const Call<Operation>& call) const;
  static std::string what(const Operation& operation);
  static std::string told(const Operation& operation);

 private:
  // The value after an operation on its key; nothing if the answer is impossible.
  static std::optional<Value> after(const Value& value, const Operation& operation, bool answered);
  static std::optional<Value> with_part(Value value, const Operation& operation, bool answered);
  static std::optional<Value> as_found(const Value& value, const Operation& operation);
};

}  // namespace perdura::services
