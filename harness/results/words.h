// Serializes structures as 64-bit words for another process of the same program. The fields of a
// structure are listed once for writing and reading, in a function visit(archive, structure) beside
// it, which calls archive(field, field, ...).
//
//   template <class Archive, class T>
//     requires IsOf<T, AtWork>
//   void visit(Archive& archive, T& at_work) { archive(at_work.clock, at_work.begin); }
//
//   WordWriter writer;
//   visit(writer, at_work);
//   WordReader reader(writer.words());
//   visit(reader, other);  // throws PlatformError if the words end too early
#pragma once

#include <array>
#include <bit>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "harness/measure/histogram.h"
#include "platform/base/error.h"

namespace perdura::harness {

using Words = std::vector<std::uint64_t>;

// T is Structure or const Structure.
template <class T, class Structure>
concept IsOf = std::same_as<std::remove_const_t<T>, Structure>;

template <class T>
concept IsNumber = std::integral<T> || std::is_enum_v<T>;

class WordWriter {
 public:
  static constexpr bool kReads = false;

  template <class... Fields>
  void operator()(const Fields&... fields) {
    (put(fields), ...);
  }
  const Words& words() const { return words_; }
  Words take() { return std::move(words_); }

 private:
  template <IsNumber T>
  void put(T value) {
    words_.push_back(static_cast<std::uint64_t>(value));
  }
  void put(double value) { words_.push_back(std::bit_cast<std::uint64_t>(value)); }
  template <class Count, class Unit>
  void put(std::chrono::duration<Count, Unit> duration) {
    put(duration.count());
  }
  void put(Time time) { put(time.time_since_epoch()); }
  void put(const std::string& text) {
    put(text.size());
    const std::size_t start = words_.size();
    words_.resize(start + (text.size() + 7) / 8);
    if (!text.empty()) std::memcpy(words_.data() + start, text.data(), text.size());
  }
  void put(const measure::Histogram& histogram) { put(histogram.serialize()); }
  void put(const Words& words) {
    put(words.size());
    words_.insert(words_.end(), words.begin(), words.end());
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  template <class T>
  void put(const std::vector<T>& values) {
    put(values.size());
    for (const T& value : values) put(value);
  }
  template <class Key, class Value, class... More>
  void put(const std::map<Key, Value, More...>& values) {
    put(values.size());
    for (const auto& [key, value] : values) {
      put(key);
      put(value);
    }
  }
  template <class T>
  requires std::is_class_v<T>
  void put(const T& structure) { visit(*this, structure); }

  Words words_;
};

class WordReader {
 public:
  static constexpr bool kReads = true;

  // The words must outlive this.
  explicit WordReader(std::span<const std::uint64_t> words) : words_(words) {}

  template <class... Fields>
  void operator()(Fields&... fields) {
    (get(fields), ...);
  }
  bool at_end() const { return words_.empty(); }

 private:
  std::span<const std::uint64_t> take(std::uint64_t count) {
    if (count > words_.size()) throw PlatformError("a rank sent a measurement that was cut off");
    const auto taken = words_.first(count);
    words_ = words_.subspan(count);
    return taken;
  }
  std::uint64_t next() { return take(1).front(); }
  // Reads a number of items. Each item takes at least one word, which bounds a valid number.
  std::uint64_t count() {
    const std::uint64_t count = next();
    if (count > words_.size()) (void)take(count);
    return count;
  }

  template <IsNumber T>
  void get(T& value) {
    value = static_cast<T>(next());
  }
  void get(double& value) { value = std::bit_cast<double>(next()); }
  template <class Count, class Unit>
  void get(std::chrono::duration<Count, Unit>& duration) {
    duration = std::chrono::duration<Count, Unit>(static_cast<Count>(next()));
  }
  void get(Time& time) {
    Time::duration since{};
    get(since);
    time = Time(since);
  }
  void get(std::string& text) {
    const std::uint64_t size = next();
    const auto words = take(size / 8 + (size % 8 == 0 ? 0 : 1));
    text.assign(size, '\0');
    if (size > 0) std::memcpy(text.data(), words.data(), size);
  }
  void get(measure::Histogram& histogram) {
    auto read = measure::Histogram::deserialize(take(next()));
    if (!read) throw PlatformError("a rank sent a damaged histogram: " + read.error());
    histogram = std::move(*read);
  }
  void get(Words& words) {
    const auto taken = take(next());
    words.assign(taken.begin(), taken.end());
  }
  template <class T>
  void get(std::optional<T>& value) {
    value.reset();
    if (next() != 0) get(value.emplace());
  }
  template <class T>
  void get(std::vector<T>& values) {
    values.clear();
    const std::uint64_t size = count();
    values.reserve(size);
    for (std::uint64_t left = size; left > 0; --left) get(values.emplace_back());
  }
  template <class Key, class Value, class... More>
  void get(std::map<Key, Value, More...>& values) {
    values.clear();
    for (std::uint64_t left = count(); left > 0; --left) {
      Key key{};
      get(key);
      get(values[std::move(key)]);
    }
  }
  template <class T>
  requires std::is_class_v<T>
  void get(T& structure) { visit(*this, structure); }

  std::span<const std::uint64_t> words_;
};

}  // namespace perdura::harness
