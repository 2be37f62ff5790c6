// Makes text safe to show in a message: a file of the wrong kind, or an untrusted program, may
// produce control sequences that a terminal would execute, and very long lines.
#pragma once

#include <string>
#include <string_view>

namespace perdura {

// The text on one line, with control characters and bytes that are not UTF-8 as \x1b. A long text
// is reduced to its beginning and its end, where messages say what is wrong and what to do.
std::string printable(std::string_view text);

}  // namespace perdura
