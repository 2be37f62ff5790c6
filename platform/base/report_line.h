// Lines on the standard error output of a process that serves others. Whoever reads them may be
// slow, or stopped: a pipe or a terminal then takes no more, and a server that waited for it would
// serve nobody.
#pragma once

#include <string_view>

namespace perdura {

// Writes the line, and the end of it, at once if that is possible. Never waits: of what has no room
// the rest is lost.
void report_line(std::string_view line);

}  // namespace perdura
