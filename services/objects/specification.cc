#include "services/objects/specification.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace perdura::services {

using objects::Error;
using Kind = ObjectsSpecification::Operation::Kind;

namespace {

// The last byte of a partial word is this plus the word's number of bytes. No word that the
// scenarios store, the number of a value, is so large.
constexpr unsigned kMarkShift = 8 * (kWord - 1);
constexpr std::uint64_t kMark = 0xe0;

}  // namespace

ObjectsSpecification::Words ObjectsSpecification::words_of(std::span<const std::byte> bytes) {
  const std::size_t rest = bytes.size() % kWord;
  Words words(bytes.size() / kWord + (rest > 0 ? 1 : 0));
  std::memcpy(words.data(), bytes.data(), bytes.size());
  if (rest > 0) words.back() |= (kMark | rest) << kMarkShift;
  return words;
}

std::size_t ObjectsSpecification::bytes_in_part(std::uint64_t word) {
  const std::uint64_t last = word >> kMarkShift;
  return last > kMark && last < kMark + kWord ? last - kMark : 0;
}

std::vector<ObjectsSpecification::State> ObjectsSpecification::after(const State& state,
                                                                     const Operation& operation,
                                                                     bool answered) const {
  const Pool& pool = state.at(operation.pool);
  const std::optional<Error> error = answered ? operation.error : std::nullopt;
  const auto allowed_if = [&](bool allowed) {
    return allowed ? std::vector<State>{state} : std::vector<State>{};
  };
  const auto with = [&](Pool changed) {
    State next = state;
    next[operation.pool] = std::move(changed);
    return std::vector<State>{std::move(next)};
  };
  switch (operation.kind) {
    case Kind::create:
      if (error)
        return allowed_if(error == Error::out_of_space || (error == Error::exists && pool.there));
      if (pool.there) return allowed_if(!answered);
      return with({true, std::vector<Value>(keys)});
    case Kind::open:
      if (error) return allowed_if(error == Error::not_found && !pool.there);
      return allowed_if(pool.there || !answered);
    case Kind::remove:
      if (error) return allowed_if(error == (pool.there ? Error::busy : Error::not_found));
      if (!pool.there) return allowed_if(!answered);
      return with({});
    case Kind::put:
    case Kind::put_part:
    case Kind::get:
    case Kind::erase:
      break;
  }
  // A pool that a client has open cannot be removed, unless the client has died.
  if (!pool.there) return allowed_if(!answered);
  std::optional<Value> value = after(pool.values.at(operation.key), operation, answered);
  if (!value) return {};
  Pool changed = pool;
  changed.values[operation.key] = std::move(*value);
  return with(std::move(changed));
}

std::optional<ObjectsSpecification::Value> ObjectsSpecification::after(const Value& value,
                                                                       const Operation& operation,
                                                                       bool answered) {
  const bool there = !value.words.empty();
  const auto unchanged_if = [&](bool allowed) {
    return allowed ? std::optional(value) : std::nullopt;
  };
  const std::optional<Error> error = answered ? operation.error : std::nullopt;
  switch (operation.kind) {
    case Kind::put:
      if (error) return unchanged_if(error == Error::out_of_space);
      return Value{operation.words, {}};
    case Kind::put_part:
      return with_part(value, operation, answered);
    case Kind::get:
      if (!answered) return value;
      if (error) return unchanged_if(error == Error::not_found && !there);
      return as_found(value, operation);
    case Kind::erase:
      if (error) return unchanged_if(error == Error::not_found && !there);
      if (!there) return unchanged_if(!answered);
      return Value{};
    default:
      return std::nullopt;
  }
}

std::optional<ObjectsSpecification::Value> ObjectsSpecification::with_part(
    Value value, const Operation& operation, bool answered) {
  const bool there = !value.words.empty();
  const std::size_t end = operation.first + operation.words.size();
  const bool fits = end <= whole_words(value.words);
  if (answered && operation.error) {
    const bool allowed = operation.error == (there ? Error::invalid : Error::not_found) && !fits;
    return allowed ? std::optional(value) : std::nullopt;
  }
  if (!fits) return answered ? std::nullopt : std::optional(value);
  if (!answered) value.perhaps.resize(value.words.size());
  for (std::size_t i = operation.first; i < end; ++i) {
    const std::uint64_t word = operation.words[i - operation.first];
    if (answered) {
      value.words[i] = word;
      if (!value.perhaps.empty()) value.perhaps[i].clear();
      continue;
    }
    Words& perhaps = value.perhaps[i];
    const auto place = std::lower_bound(perhaps.begin(), perhaps.end(), word);
    if (place == perhaps.end() || *place != word) perhaps.insert(place, word);
  }
  return value;
}

std::optional<ObjectsSpecification::Value> ObjectsSpecification::as_found(
    const Value& value, const Operation& operation) {
  const Words& found = operation.words;
  if (found.empty() || found.size() != value.words.size()) return std::nullopt;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] == value.words[i]) continue;
    if (value.perhaps.empty()) return std::nullopt;
    const Words& perhaps = value.perhaps[i];
    if (!std::binary_search(perhaps.begin(), perhaps.end(), found[i])) return std::nullopt;
  }
  return Value{found, {}};
}

bool ObjectsSpecification::changes(const Operation& operation) const {
  return operation.kind != Kind::open && operation.kind != Kind::get;
}

namespace {

// Lists each run of equal words once, with its length.
std::string text_of(const ObjectsSpecification::Words& words) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < words.size();) {
    std::size_t end = i;
    while (end < words.size() && words[end] == words[i]) ++end;
    if (const std::size_t bytes = ObjectsSpecification::bytes_in_part(words[i]); bytes > 0) {
      runs.push_back(fmt::format("{} bytes more", bytes));
    } else {
      runs.push_back(fmt::format("{} x{}", words[i], end - i));
    }
    i = end;
  }
  return fmt::format("{}", fmt::join(runs, ", "));
}

}  // namespace

std::string ObjectsSpecification::what(const Operation& operation) {
  const std::string_view direct = operation.direct ? " directly" : "";
  const std::string key = fmt::format("key {} of pool {}", operation.key, operation.pool);
  switch (operation.kind) {
    case Kind::create:
      return fmt::format("creation of pool {}", operation.pool);
    case Kind::open:
      return fmt::format("opening of pool {}", operation.pool);
    case Kind::remove:
      return fmt::format("removal of pool {}", operation.pool);
    case Kind::put:
      return fmt::format("put{} of {} to {}", direct, text_of(operation.words), key);
    case Kind::put_part:
      return fmt::format("put directly of {} from word {} on to {}", text_of(operation.words),
                         operation.first, key);
    case Kind::get:
      return fmt::format("get{} of {}", direct, key);
    case Kind::erase:
      return fmt::format("erase of {}", key);
  }
  return "";
}

std::string ObjectsSpecification::told(const Operation& operation) {
  if (operation.error) return std::string(objects::to_string(*operation.error));
  return operation.kind == Kind::get ? text_of(operation.words) : "done";
}

std::string ObjectsSpecification::text(const Call<Operation>& call) const {
  return fmt::format("{}{}", what(call.operation),
                     call.answered ? ": " + told(call.operation) : ", no answer");
}

}  // namespace perdura::services
