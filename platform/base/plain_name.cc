#include "platform/base/plain_name.h"

#include <algorithm>

namespace perdura {

bool is_entry_name(std::string_view name) {
  constexpr std::string_view kOfPaths("/\0", 2);
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(kOfPaths) == std::string_view::npos;
}

bool is_visible_name(std::string_view name) { return is_entry_name(name) && name.front() != '.'; }

bool is_plain_character(char character) {
  return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
         (character >= '0' && character <= '9') || character == '-' || character == '_' ||
         character == '.';
}

bool is_plain_name(std::string_view name, std::size_t longest) {
  return is_visible_name(name) && name.size() <= longest &&
         std::all_of(name.begin(), name.end(), is_plain_character);
}

}  // namespace perdura
