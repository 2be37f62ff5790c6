#include "preload/execution.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

namespace perdura::preload {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> environment_with(const std::vector<std::string>& more) {
  std::vector<std::string> all = more;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view given = *variable;
    const std::string_view name = given.substr(0, given.find('=') + 1);
    const bool is_replaced = std::any_of(
        more.begin(), more.end(), [&](const auto& other) { return other.starts_with(name); });
    if (!is_replaced) all.emplace_back(given);
  }
  return all;
}

}  // namespace perdura::preload
