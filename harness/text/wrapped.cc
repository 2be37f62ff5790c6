#include "harness/text/wrapped.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace perdura::harness {
namespace {

// Bytes of UTF-8 that continue a character take no room.
std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

std::size_t room_of_line() {
  winsize size{};
  if (isatty(STDOUT_FILENO) != 1 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

std::string wrapped(std::string_view line, std::size_t indent, std::size_t room) {
  if (room == 0 || characters(line) <= room) return std::string(line);
  std::string text;
  std::size_t used = 0;    // characters of the last line
  bool has_words = false;  // it has
  while (!line.empty()) {
    // The blanks before a word belong to it unless it begins a line.
    const std::size_t word = std::min(line.find_first_not_of(' '), line.size());
    const std::size_t end = std::min(line.find(' ', word), line.size());
    const std::string_view piece = line.substr(0, end);
    line.remove_prefix(end);
    const std::size_t length = characters(piece);
    if (has_words && used + length > room) {
      text += '\n' + std::string(indent, ' ');
      text += piece.substr(word);
      used = indent + length - word;
    } else {
      text += piece;
      used += length;
    }
    has_words = true;
  }
  return text;
}

}  // namespace perdura::harness
