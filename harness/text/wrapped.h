// Lines of text for a terminal, which would break them in the middle of a word.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace perdura::harness {

// How many characters a line of standard output has room for; 0, without bound, if it is no
// terminal: what reads a pipe or a file wants whole lines.
std::size_t room_of_line();

// The text of one line as lines of at most `room` characters, broken between words; all but the
// first begin with `indent` blanks. A word that is longer than the room stays whole. `room` 0: as it
// is.
std::string wrapped(std::string_view line, std::size_t indent, std::size_t room);

}  // namespace perdura::harness
