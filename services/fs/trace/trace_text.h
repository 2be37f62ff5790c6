// A trace as text, for people and for programs that make traces of their own: a line for each
// record.
//
//   file 8192 mail/17      the next file (0, 1, ...): its size and its name, which may be missing
//   open 0                 sync 0, close 0: the file's number
//   read 0 4096 100        write, append: the file's number, offset, length
//   truncate 0 100         the file's number, the new size
//
// Empty lines, and lines that begin with #, say nothing. In a name a backslash is \5c, and control
// characters are written in the same way.
#pragma once

#include <string>
#include <string_view>

#include "services/fs/trace/trace.h"
#include "services/fs/trace/trace_writer.h"

namespace perdura::fs {

// The line of a record, without its end. `file` is the file that a record `file` adds.
std::string trace_line(const TraceRecord& record, const TracedFile& file);

// Adds what a line says. Throws UsageError that says what is wrong with it.
void add_trace_line(std::string_view line, TraceWriter& writer);

// Adds all lines of a file. Throws UsageError, which begins with the file and the line, if one is
// wrong or the file cannot be opened, and PlatformError if it cannot be read to its end.
void add_trace_lines(const std::string& file, TraceWriter& writer);

}  // namespace perdura::fs
