// What of a message may be shown: files that are not what they were taken for have bytes that a
// terminal obeys, and lines without an end.
#pragma once

#include <string>
#include <string_view>

namespace perdura::harness {

// Without the mark of UTF-8 that some editors put in front of a text.
std::string_view without_byte_order_mark(std::string_view text);

// On one line: control characters and what is not UTF-8 as \x1b, and of a long text its beginning
// and its end, where messages say what is wrong and what to do.
std::string printable(std::string_view text);

}  // namespace perdura::harness
