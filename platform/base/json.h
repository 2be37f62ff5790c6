// JSON (RFC 8259): values that programs read and write. An object's members keep the order in which
// they were added. Only json.cc includes the library that parses and prints the text, because its
// templates take two seconds to compile in each source.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <limits>
#include <ranges>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace perdura {

// A text is not JSON, or a value is not of the requested type. The message says what is wrong.
struct JsonError : std::runtime_error {
  using std::runtime_error::runtime_error;
  // For a text that is not JSON: the number of bytes that were read; otherwise 0.
  std::size_t position = 0;
};

class Json;

template <class Type>
concept NumberForJson = std::integral<Type> && !std::same_as<Type, bool>;
template <class Type>
concept TextForJson = !std::same_as<Type, Json> && std::convertible_to<Type, std::string_view>;
template <class Type>
concept RangeForJson =
    !std::same_as<Type, Json> && !TextForJson<Type> && std::ranges::input_range<Type>;

class Json {
 public:
  struct Member;

  // The greatest nesting depth of arrays and objects: values are read and destroyed recursively,
  // and a stack of 8 MiB holds ten times as many.
  static constexpr int kDeepest = 1000;

  // Null.
  Json();
  Json(std::nullptr_t) : Json() {}
  Json(std::same_as<bool> auto value) : Json() { set_boolean(value); }
  template <NumberForJson Number>
  Json(Number value) : Json() {
    if constexpr (std::signed_integral<Number>) {
      set_signed(value);
    } else {
      set_unsigned(value);
    }
  }
  Json(std::floating_point auto value) : Json() { set_real(static_cast<double>(value)); }
  template <TextForJson Text>
  Json(const Text& value) : Json() {
    set_text(value);
  }
  // From a map: an object of its keys and values; from another range: an array of its elements, in
  // which pairs are arrays of two.
  template <RangeForJson Range>
  Json(const Range& range) : Json(array()) {
    constexpr bool kMap = requires { typename Range::mapped_type; };
    if constexpr (kMap) *this = object();
    for (const auto& each : range) {
      if constexpr (kMap) {
        (*this)[each.first] = Json(each.second);
      } else if constexpr (requires { each.second; }) {
        push_back({Json(each.first), Json(each.second)});
      } else {
        push_back(Json(each));
      }
    }
  }
  // An object if all are pairs {NAME, VALUE}, otherwise an array.
  Json(std::initializer_list<Json> values);
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  static Json array(std::initializer_list<Json> elements = {});
  static Json object();
  // Throws JsonError if the text is not JSON, or is nested deeper than kDeepest.
  static Json parse(std::string_view text);
  // Null where parse() throws.
  static Json parse_or_null(std::string_view text);
  // Calls `use` for each element of an array, one after the other, so that all together take no
  // more memory than the largest. Returns true if the text is an array. Throws JsonError as parse()
  // does, and the exceptions of `use`.
  static bool for_each_element(std::string_view text, const std::function<void(const Json&)>& use);

  // The text in one line, or with members and elements in lines of their own, indented by `indent`
  // spaces. Bytes that are not UTF-8 are replaced.
  std::string dump(int indent = -1) const;

  bool is_null() const { return kind_ == Kind::null; }
  bool is_boolean() const { return kind_ == Kind::boolean; }
  bool is_number() const;
  bool is_string() const { return kind_ == Kind::text; }
  bool is_array() const { return kind_ == Kind::array; }
  bool is_object() const { return kind_ == Kind::object; }

  // The number of an array's elements or an object's members; 0 for null, 1 for other values.
  std::size_t size() const;
  bool empty() const { return size() == 0; }

  // Throws JsonError if the value is of another type, or too large or too small for it. Arrays
  // become ranges that have push_back(), objects become maps, arrays of two elements pairs.
  template <class Value>
  Value get() const;

  // --- objects; [] turns null into one. Other values throw JsonError.
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  // Returns null if this is no object, or has no such member.
  const Json* find(std::string_view name) const;
  Json* find(std::string_view name);
  const Json& at(std::string_view name) const;
  const Json& operator[](std::string_view name) const { return at(name); }
  Json& operator[](std::string_view name);
  // The value of a member, or `usual` if there is none of that name.
  template <class Value>
  Value value(std::string_view name, const Value& usual) const {
    const Json* const found = find(name);
    return found == nullptr ? usual : found->get<Value>();
  }
  std::string value(std::string_view name, const char* usual) const {
    return value(name, std::string(usual));
  }
  const std::vector<Member>& items() const;
  void erase(std::string_view name);
  // Adds the members of another object, replacing those of the same name.
  void update(const Json& other);

  // --- arrays; push_back() turns null into one. Other values throw JsonError.
  const std::vector<Json>& elements() const;
  std::vector<Json>& elements();
  auto begin() const { return elements().begin(); }
  auto end() const { return elements().end(); }
  auto begin() { return elements().begin(); }
  auto end() { return elements().end(); }
  const Json& at(std::size_t index) const;
  const Json& operator[](std::size_t index) const { return at(index); }
  Json& operator[](std::size_t index);
  Json& back();
  Json& push_back(Json value);

  // Numbers of the same value are equal, and objects whatever the order of their members.
  friend bool operator==(const Json& a, const Json& b) { return equal(a, b); }
  friend std::ostream& operator<<(std::ostream& out, const Json& value);

 private:
  enum class Kind : std::uint8_t { null, boolean, integer, natural, real, text, array, object };

  static bool equal(const Json& a, const Json& b);
  void set_boolean(bool value);
  void set_signed(std::int64_t value);
  void set_unsigned(std::uint64_t value);
  void set_real(double value);
  void set_text(std::string_view value);
  bool boolean() const;
  std::int64_t integer(std::int64_t least, std::int64_t most) const;
  std::uint64_t natural(std::uint64_t most) const;
  double real() const;
  const std::string& text() const;
  [[noreturn]] void is_not(std::string_view expected) const;

  friend struct JsonLibrary;

  Kind kind_ = Kind::null;
  union {
    bool boolean_;
    std::int64_t integer_;
    std::uint64_t natural_ = 0;
    double real_;
  };
  std::string text_;
  std::vector<Json> elements_;
  std::vector<Member> members_;
};

struct Json::Member {
  std::string name;
  Json value;
};

template <class Value>
Value Json::get() const {
  if constexpr (std::same_as<Value, bool>) {
    return boolean();
  } else if constexpr (std::signed_integral<Value>) {
    return static_cast<Value>(
        integer(std::numeric_limits<Value>::min(), std::numeric_limits<Value>::max()));
  } else if constexpr (std::unsigned_integral<Value>) {
    return static_cast<Value>(natural(std::numeric_limits<Value>::max()));
  } else if constexpr (std::floating_point<Value>) {
    return static_cast<Value>(real());
  } else if constexpr (std::same_as<Value, std::string>) {
    return text();
  } else if constexpr (std::same_as<Value, Json>) {
    return *this;
  } else if constexpr (requires { typename Value::mapped_type; }) {
    Value map;
    for (const Member& member : items()) {
      map.emplace(member.name, member.value.get<typename Value::mapped_type>());
    }
    return map;
  } else if constexpr (requires { typename Value::first_type; }) {
    return {at(0).get<typename Value::first_type>(), at(1).get<typename Value::second_type>()};
  } else {
    Value list;
    for (const Json& element : elements()) {
      list.push_back(element.get<typename Value::value_type>());
    }
    return list;
  }
}

}  // namespace perdura
