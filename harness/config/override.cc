#include "harness/config/override.h"

#include <fmt/format.h>

#include "platform/base/error.h"

namespace perdura::harness {

Override parse_override(std::string_view argument) {
  const std::size_t equals = argument.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    throw UsageError(fmt::format("--set {}: write --set SECTION.KEY=VALUE", argument));
  }
  return {std::string(argument.substr(0, equals)), std::string(argument.substr(equals + 1)),
          fmt::format("--set {}", argument)};
}

}  // namespace perdura::harness
