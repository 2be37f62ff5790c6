// Makes text safe to show in a message: a file of the wrong kind, or a program that is not trusted,
// may say control sequences that a terminal would execute, and very long lines.
#pragma once

#include <string>
#include <string_view>

namespace perdura {

// On one line: control characters and what is not UTF-8 as \x1b, and of a long text its beginning
// and its end, where messages say what is wrong and what to do.
std::string printable(std::string_view text);

}  // namespace perdura
