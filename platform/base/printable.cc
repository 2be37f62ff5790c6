#include "platform/base/printable.h"

#include <fmt/format.h>

namespace perdura {
namespace {

constexpr std::size_t kBeginning = 1200;  // in bytes; enough for a list of all known names
constexpr std::size_t kEnd = 400;

unsigned byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

// The length in bytes of the character at the beginning of the text; 0 if it is not printable.
std::size_t length_of_character(std::string_view text) {
  const unsigned first = byte_at(text, 0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte_at(text, i) & 0xc0U) != 0x80U) return 0;
  }
  const unsigned second = byte_at(text, 1);
  const bool control = first == 0xc2 && second < 0xa0;
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool beyond = (first == 0xed && second >= 0xa0) || (first == 0xf4 && second >= 0x90);
  return control || overlong || beyond ? 0 : length;
}

bool inside_character(std::string_view text, std::size_t at) {
  return at < text.size() && (byte_at(text, at) & 0xc0U) == 0x80U;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t length = length_of_character(text);
    if (length == 0) {
      shown += fmt::format("\\x{:02x}", byte_at(text, 0));
    } else {
      shown += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  if (shown.size() <= kBeginning + kEnd) return shown;
  std::size_t first = kBeginning;
  while (inside_character(shown, first)) --first;
  std::size_t rest = shown.size() - kEnd;
  while (inside_character(shown, rest)) ++rest;
  return shown.substr(0, first) + " … " + shown.substr(rest);
}

}  // namespace perdura
