#include "platform/base/parameter.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace perdura {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

// Joins the words to text such as: "a", "b" or "c".
std::string alternatives(std::span<const std::string_view> words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const char* const between = i == 0 ? "" : i + 1 == words.size() ? " or " : ", ";
    text += fmt::format("{}\"{}\"", between, words[i]);
  }
  return text;
}

double as_real(const ParameterValue& value) {
  return value.is_real() ? value.real() : static_cast<double>(value.number());
}

}  // namespace

std::uint64_t ParameterValue::number() const {
  if (is_flag()) return flag() ? 1 : 0;
  if (!is_number()) throw std::logic_error(to_text() + " is not a whole number");
  return std::get<std::uint64_t>(value_);
}

double ParameterValue::real() const {
  if (!is_real()) throw std::logic_error(to_text() + " is not a decimal number");
  return std::get<double>(value_);
}

bool ParameterValue::flag() const {
  if (is_number()) return number() != 0;
  if (!is_flag()) throw std::logic_error(to_text() + " is neither true nor false");
  return std::get<bool>(value_);
}

const std::string& ParameterValue::text() const {
  if (!is_text()) throw std::logic_error(to_text() + " is not a text");
  return std::get<std::string>(value_);
}

std::string ParameterValue::to_text() const {
  return std::visit([](const auto& value) { return fmt::format("{}", value); }, value_);
}

bool ParameterValue::operator==(const ParameterValue& other) const {
  const bool written_otherwise =
      (is_flag() && other.is_number()) || (is_number() && other.is_flag());
  return written_otherwise ? number() == other.number() : value_ == other.value_;
}

ParameterValue UsualValue::value() const {
  return std::visit(
      Overloaded{[](std::monostate) -> ParameterValue {
                   throw std::logic_error("a parameter without a usual value was not given");
                 },
                 [](const auto& value) { return ParameterValue(value); }},
      value_);
}

std::string Parameter::problem_with(const ParameterValue& value) const {
  return std::visit(
      Overloaded{
          [&](const Count& count) -> std::string {
            if (value.is_number() && value.number() >= count.least && value.number() <= count.most)
              return "";
            if (count.least == count.most) return fmt::format("must be {}", count.least);
            return fmt::format("must be a whole number from {} to {}", count.least, count.most);
          },
          [&](const Share&) -> std::string {
            const bool decimal = value.is_real() || value.is_number();
            if (decimal && as_real(value) > 0 && as_real(value) <= 1) return "";
            return "must be a decimal number above 0, at most 1, such as 0.02";
          },
          [&](const Real& real) -> std::string {
            const bool decimal = value.is_real() || value.is_number();
            if (decimal && as_real(value) >= real.least && as_real(value) <= real.most) return "";
            return fmt::format("must be a decimal number from {} to {}", real.least, real.most);
          },
          [&](const Flag&) -> std::string {
            if (value.is_flag() || (value.is_number() && value.number() <= 1)) return "";
            return "must be true or false";
          },
          [&](const OneOf& one) -> std::string {
            if (!value.is_text()) return "must be text in quotes";
            const auto& words = one.words;
            if (std::find(words.begin(), words.end(), value.text()) != words.end()) return "";
            return "must be " + alternatives(words);
          },
          [&](const Name&) -> std::string {
            if (!value.is_text()) return "must be text in quotes";
            return value.text().empty() ? "must not be empty" : "";
          }},
      type);
}

ParameterValue Parameter::of_type(ParameterValue value) const {
  if (std::holds_alternative<Flag>(type)) return value.flag();
  const bool real = std::holds_alternative<Share>(type) || std::holds_alternative<Real>(type);
  if (real) return as_real(value);
  return value;
}

std::string Parameter::type_in_words() const {
  return std::visit(
      Overloaded{[](const Count& count) {
                   return fmt::format("whole number, {} to {}", count.least, count.most);
                 },
                 [](const Share&) -> std::string { return "decimal number, above 0, at most 1"; },
                 [](const Real& real) {
                   return fmt::format("decimal number, {} to {}", real.least, real.most);
                 },
                 [](const Flag&) -> std::string { return "true or false"; },
                 [](const OneOf& one) { return alternatives(one.words); },
                 [](const Name&) -> std::string { return "name"; }},
      type);
}

const Parameter* find_parameter(std::span<const Parameter> table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const Parameter& each) { return each.name == name; });
  return found == table.end() ? nullptr : &*found;
}

std::vector<std::string_view> names_of(std::span<const Parameter> table) {
  std::vector<std::string_view> names;
  for (const Parameter& parameter : table) names.push_back(parameter.name);
  return names;
}

}  // namespace perdura
