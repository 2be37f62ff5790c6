#include "report/formula.h"

#include <fmt/format.h>

#include "harness/schema/csv_table.h"

namespace perdura::report {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// Applies `each` to the parts of the text between the separators; stops at the first error.
template <class Each>
schema::Expected<void> for_each_part(std::string_view text, char separator, Each each) {
  while (true) {
    const auto end = text.find(separator);
    if (auto done = each(trimmed(text.substr(0, end))); !done) return done;
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
}

schema::Expected<double> factor(std::string_view text, FormulaSizes sizes) {
  if (text == "key") return sizes.key;
  if (text == "value") return sizes.value;
  if (text == "N") return sizes.key + sizes.value;
  if (const auto number = schema::parse_number(text)) return *number;
  return schema::fail(fmt::format("'{}' is not a number, key, value or N", text));
}

}  // namespace

schema::Expected<double> evaluate(std::string_view formula, FormulaSizes sizes) {
  double sum = 0;
  auto summed = for_each_part(formula, '+', [&](std::string_view term) {
    double product = 1;
    auto multiplied =
        for_each_part(term, '*', [&](std::string_view text) -> schema::Expected<void> {
          const auto number = factor(text, sizes);
          if (!number) return tl::unexpected(number.error());
          product *= *number;
          return {};
        });
    sum += product;
    return multiplied;
  });
  if (!summed) return tl::unexpected(summed.error());
  return sum;
}

}  // namespace perdura::report
