#include "platform/base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

namespace perdura {

using nlohmann::ordered_json;

// Converts to and from the library's values.
struct JsonLibrary {
  static ordered_json to(const Json& value) {
    switch (value.kind_) {
      case Json::Kind::null:
        return nullptr;
      case Json::Kind::boolean:
        return value.boolean_;
      case Json::Kind::integer:
        return value.integer_;
      case Json::Kind::natural:
        return value.natural_;
      case Json::Kind::real:
        return value.real_;
      case Json::Kind::text:
        return value.text_;
      case Json::Kind::array: {
        ordered_json array = ordered_json::array();
        for (const Json& element : value.elements_) array.push_back(to(element));
        return array;
      }
      case Json::Kind::object: {
        ordered_json object = ordered_json::object();
        for (const auto& [name, member] : value.members_) object[name] = to(member);
        return object;
      }
    }
    return nullptr;
  }

  static Json from(const ordered_json& value) {
    switch (value.type()) {
      case ordered_json::value_t::boolean:
        return value.get<bool>();
      case ordered_json::value_t::number_integer:
        return value.get<std::int64_t>();
      case ordered_json::value_t::number_unsigned:
        return value.get<std::uint64_t>();
      case ordered_json::value_t::number_float:
        return value.get<double>();
      case ordered_json::value_t::string:
        return value.get_ref<const std::string&>();
      case ordered_json::value_t::array: {
        Json array = Json::array();
        for (const ordered_json& element : value) array.push_back(from(element));
        return array;
      }
      case ordered_json::value_t::object: {
        Json object = Json::object();
        for (const auto& [name, member] : value.items()) {
          object.members_.push_back({name, from(member)});
        }
        return object;
      }
      default:
        return {};
    }
  }

  // The library's message is replaced: it names its exceptions, which means nothing to the author
  // of the text.
  static JsonError not_json(std::string_view text, std::size_t read) {
    const std::string_view before = text.substr(0, read == 0 ? 0 : read - 1);
    const auto lines = std::count(before.begin(), before.end(), '\n');
    const std::size_t line_begin = before.rfind('\n');
    const std::size_t column =
        before.size() - (line_begin == std::string_view::npos ? 0 : line_begin + 1);
    JsonError error(before.size() >= text.size()
                        ? fmt::format("line {}: it is not JSON: it ends too early", lines + 1)
                        : fmt::format("line {}, column {}: it is not JSON", lines + 1, column + 1));
    error.position = read;
    return error;
  }

  // Keeps each value for which `keep(depth, event, value)` is true, as the library calls it.
  template <class Keep>
  static ordered_json parse(std::string_view text, const Keep& keep) {
    using Event = ordered_json::parse_event_t;
    const auto look = [&](int depth, Event event, ordered_json& value) {
      const bool begins = event == Event::array_start || event == Event::object_start;
      if (begins && depth >= Json::kDeepest) {
        throw JsonError(fmt::format("is nested deeper than {}", Json::kDeepest));
      }
      return keep(depth, event, value);
    };
    try {
      return ordered_json::parse(text.begin(), text.end(), look);
    } catch (const ordered_json::parse_error& problem) {
      throw not_json(text, problem.byte);
    } catch (const ordered_json::exception&) {
      throw JsonError("it is not JSON: a number is too large");
    }
  }
};

Json::Json() = default;
Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) = default;
Json& Json::operator=(Json&& other) noexcept = default;
Json::~Json() = default;

Json::Json(std::initializer_list<Json> values) : Json() {
  const bool object = std::all_of(values.begin(), values.end(), [](const Json& value) {
    return value.is_array() && value.size() == 2 && value.elements_[0].is_string();
  });
  kind_ = object ? Kind::object : Kind::array;
  for (const Json& value : values) {
    if (object) {
      members_.push_back({value.elements_[0].text_, value.elements_[1]});
    } else {
      elements_.push_back(value);
    }
  }
}

Json Json::array(std::initializer_list<Json> elements) {
  Json value;
  value.kind_ = Kind::array;
  value.elements_ = elements;
  return value;
}

Json Json::object() {
  Json value;
  value.kind_ = Kind::object;
  return value;
}

Json Json::parse(std::string_view text) {
  return JsonLibrary::from(JsonLibrary::parse(
      text, [](int, ordered_json::parse_event_t, const ordered_json&) { return true; }));
}

Json Json::parse_or_null(std::string_view text) {
  try {
    return parse(text);
  } catch (const JsonError&) {
    return {};
  }
}

bool Json::for_each_element(std::string_view text, const std::function<void(const Json&)>& use) {
  using Event = ordered_json::parse_event_t;
  const auto take = [&](int depth, Event event, const ordered_json& value) {
    const bool whole =
        event == Event::object_end || event == Event::value || event == Event::array_end;
    if (depth != 1 || !whole) return true;
    use(JsonLibrary::from(value));
    return false;
  };
  return JsonLibrary::parse(text, take).is_array();
}

std::string Json::dump(int indent) const {
  return JsonLibrary::to(*this).dump(indent, ' ', false, ordered_json::error_handler_t::replace);
}

bool Json::is_number() const {
  return kind_ == Kind::integer || kind_ == Kind::natural || kind_ == Kind::real;
}

std::size_t Json::size() const {
  switch (kind_) {
    case Kind::null:
      return 0;
    case Kind::array:
      return elements_.size();
    case Kind::object:
      return members_.size();
    default:
      return 1;
  }
}

const Json* Json::find(std::string_view name) const {
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [&](const Member& member) { return member.name == name; });
  return found == members_.end() ? nullptr : &found->value;
}

Json* Json::find(std::string_view name) {
  return const_cast<Json*>(std::as_const(*this).find(name));
}

const Json& Json::at(std::string_view name) const {
  if (!is_object()) is_not("an object");
  const Json* const found = find(name);
  if (found == nullptr) throw JsonError(fmt::format("there is no \"{}\"", name));
  return *found;
}

Json& Json::operator[](std::string_view name) {
  if (is_null()) *this = object();
  if (!is_object()) is_not("an object");
  if (Json* const found = find(name)) return *found;
  members_.push_back({std::string(name), {}});
  return members_.back().value;
}

const std::vector<Json::Member>& Json::items() const {
  if (!is_object()) is_not("an object");
  return members_;
}

void Json::erase(std::string_view name) {
  std::erase_if(members_, [&](const Member& member) { return member.name == name; });
}

void Json::update(const Json& other) {
  for (const auto& [name, value] : other.items()) (*this)[name] = value;
}

const std::vector<Json>& Json::elements() const {
  if (!is_array()) is_not("an array");
  return elements_;
}

std::vector<Json>& Json::elements() {
  if (!is_array()) is_not("an array");
  return elements_;
}

const Json& Json::at(std::size_t index) const {
  if (index >= elements().size()) {
    throw JsonError(fmt::format("there are {} elements, not {}", elements_.size(), index + 1));
  }
  return elements_[index];
}

Json& Json::operator[](std::size_t index) {
  return const_cast<Json&>(std::as_const(*this).at(index));
}

Json& Json::back() { return elements().back(); }

Json& Json::push_back(Json value) {
  if (is_null()) *this = array();
  return elements().emplace_back(std::move(value));
}

bool Json::equal(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) {
    if (a.kind_ == Kind::real || b.kind_ == Kind::real) return a.real() == b.real();
    const auto negative = [](const Json& of) {
      return of.kind_ == Kind::integer && of.integer_ < 0;
    };
    return negative(a) == negative(b) && a.natural_ == b.natural_;
  }
  if (a.kind_ != b.kind_) return false;
  if (a.is_object()) {
    return a.size() == b.size() &&
           std::all_of(a.members_.begin(), a.members_.end(), [&](const Member& member) {
             const Json* const other = b.find(member.name);
             return other != nullptr && equal(member.value, *other);
           });
  }
  return a.is_boolean() ? a.boolean_ == b.boolean_
                        : a.text_ == b.text_ && a.elements_ == b.elements_;
}

std::ostream& operator<<(std::ostream& out, const Json& value) { return out << value.dump(); }

void Json::set_boolean(bool value) {
  kind_ = Kind::boolean;
  boolean_ = value;
}

void Json::set_signed(std::int64_t value) {
  kind_ = Kind::integer;
  integer_ = value;
}

void Json::set_unsigned(std::uint64_t value) {
  kind_ = Kind::natural;
  natural_ = value;
}

void Json::set_real(double value) {
  kind_ = Kind::real;
  real_ = value;
}

void Json::set_text(std::string_view value) {
  kind_ = Kind::text;
  text_ = value;
}

bool Json::boolean() const {
  if (!is_boolean()) is_not("true or false");
  return boolean_;
}

std::int64_t Json::integer(std::int64_t least, std::int64_t most) const {
  const bool whole =
      kind_ == Kind::integer || (kind_ == Kind::natural && std::in_range<std::int64_t>(natural_));
  if (!whole || integer_ < least || integer_ > most) {
    is_not(fmt::format("a whole number from {} to {}", least, most));
  }
  return integer_;
}

std::uint64_t Json::natural(std::uint64_t most) const {
  const bool whole = kind_ == Kind::natural || (kind_ == Kind::integer && integer_ >= 0);
  if (!whole || natural_ > most) is_not(fmt::format("a whole number from 0 to {}", most));
  return natural_;
}

double Json::real() const {
  switch (kind_) {
    case Kind::integer:
      return static_cast<double>(integer_);
    case Kind::natural:
      return static_cast<double>(natural_);
    case Kind::real:
      return real_;
    default:
      is_not("a number");
  }
}

const std::string& Json::text() const {
  if (!is_string()) is_not("a text");
  return text_;
}

void Json::is_not(std::string_view expected) const {
  constexpr std::size_t kShown = 60;
  const std::string shown = dump();
  throw JsonError(fmt::format("{}{} is not {}", shown.substr(0, kShown),
                              shown.size() > kShown ? "..." : "", expected));
}

}  // namespace perdura
