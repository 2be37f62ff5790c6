// Makes text safe to show in a message: a file of the wrong kind may contain control sequences that
// a terminal would execute, and very long lines.
#pragma once

#include <string>
#include <string_view>

namespace perdura::harness {

// The text without the UTF-8 byte order mark that some editors put in front of it.
std::string_view without_byte_order_mark(std::string_view text);

// On one line: control characters and what is not UTF-8 as \x1b, and of a long text its beginning
// and its end, where messages say what is wrong and what to do.
std::string printable(std::string_view text);

}  // namespace perdura::harness
