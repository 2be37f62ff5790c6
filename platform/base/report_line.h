// Lines on the standard error output of a process that serves others. Their reader may be slow, or
// stopped: a pipe or a terminal then takes no more, and a server that waited for it would serve no
// client.
#pragma once

#include <string_view>

namespace perdura {

// Writes the line, with a newline, at once if that is possible. Never waits: the part that has no
// room is lost.
void report_line(std::string_view line);

}  // namespace perdura
