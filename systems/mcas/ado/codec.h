// Turns messages into bytes and back. A message lists its fields once:
//
//   template <class Coder>
//   void code(Coder& coder) { coder(id, key, value); }
//
// Numbers take 8 bytes; byte strings and lists begin with their length.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "systems/mcas/storage/memory.h"

namespace perdura::systems::mcas::ado {

class Encoder {
 public:
  // Uses the memory of `into`, and drops its contents.
  explicit Encoder(std::string into = {}) : bytes_(std::move(into)) {
    bytes_.clear();
    bytes_.reserve(256);
  }
  template <class... Fields>
  void operator()(const Fields&... fields) {
    (field(fields), ...);
  }
  std::string take() { return std::move(bytes_); }

 private:
  template <class Field>
  void field(const Field& value) {
    if constexpr (std::is_integral_v<Field> || std::is_enum_v<Field>) {
      const auto number = static_cast<std::uint64_t>(value);
      bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
    } else {
      const_cast<Field&>(value).code(*this);  // code() only reads it here
    }
  }
  void field(const std::string& text) {
    field(text.size());
    bytes_ += text;
  }
  void field(const ByteRange& range) { (*this)(range.offset, range.length); }
  template <class Element>
  void field(const std::vector<Element>& all) {
    field(all.size());
    for (const Element& one : all) field(one);
  }

  std::string bytes_;
};

// Fields that are missing at the end of a message become zero or empty.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : left_(bytes) {}

  template <class... Fields>
  void operator()(Fields&... fields) {
    (field(fields), ...);
  }
  // Returns true if no field was missing and no bytes are left.
  bool complete() const { return !short_ && left_.empty(); }

 private:
  template <class Field>
  void field(Field& value) {
    if constexpr (std::is_integral_v<Field> || std::is_enum_v<Field>) {
      value = static_cast<Field>(number());
    } else {
      value.code(*this);
    }
  }
  void field(std::string& text) { text = take(number()); }
  void field(std::vector<std::byte>& bytes) {
    const auto taken = std::as_bytes(std::span(take(number())));
    bytes.assign(taken.begin(), taken.end());
  }
  void field(ByteRange& range) { (*this)(range.offset, range.length); }
  template <class Element>
  void field(std::vector<Element>& all) {
    for (std::uint64_t left = number(); left > 0 && !short_; --left) field(all.emplace_back());
  }

  std::uint64_t number() {
    std::uint64_t number = 0;
    const std::string_view bytes = take(sizeof number);
    std::memcpy(&number, bytes.data(), bytes.size());
    return number;
  }
  std::string_view take(std::uint64_t length) {
    if (length > left_.size()) {
      short_ = true;
      length = 0;
    }
    const std::string_view taken = left_.substr(0, length);
    left_.remove_prefix(length);
    return taken;
  }

  std::string_view left_;
  bool short_ = false;
};

template <class Message>
std::string encoded(const Message& message) {
  Encoder encoder;
  encoder(message);
  return encoder.take();
}

}  // namespace perdura::systems::mcas::ado
