// The options of mount(8), as `perdura fs mount -o` accepts them.
#pragma once

#include <string>

namespace perdura::mount {

struct KernelOptions {
  std::string list;                // for libfuse, separated by commas; may be empty
  bool read_only = false;          // ro
  bool notes_reads = true;         // not noatime
  bool no_symbolic_links = false;  // nosymfollow, which libfuse does not know
};

// If options contradict each other, the last one counts. Leaves out options for mount(8) and its
// callers (defaults, nofail, x-...) and options about access times that have no effect here. Throws
// UsageError for options that cannot be honored and must not be ignored. All others are left to
// libfuse to accept.
KernelOptions parse_options(const std::string& given);

}  // namespace perdura::mount
