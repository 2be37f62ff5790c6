#pragma once

#include <string>
#include <string_view>

#include "harness/schema/error.h"

namespace perdura::report {

/// Variables of a paper's formula: sizes in bytes; N is the size of a key-value pair.
struct FormulaSizes {
  double key = 0;
  double value = 0;
};

/// Evaluates a sum of products such as "key + 12 + 2 * N" with the names key, value and N.
/// Error: anything else in the text.
schema::Expected<double> evaluate(std::string_view formula, FormulaSizes sizes);

}  // namespace perdura::report
