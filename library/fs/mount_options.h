// The options of mount(8), as `perdura fs mount -o` takes them.
#pragma once

#include <string>

namespace perdura::fs::fuse {

struct KernelOptions {
  std::string list;                // for libfuse, separated by commas; perhaps empty
  bool read_only = false;          // ro
  bool notes_reads = true;         // not noatime
  bool no_symbolic_links = false;  // nosymfollow, which libfuse does not know
};

// Of several that contradict each other the last one counts. Leaves out those that speak to
// mount(8) and to who calls it (defaults, nofail, x-...), and those of times of access that change
// nothing here. Throws UsageError for those that cannot be done here and must not be passed over.
// Others are libfuse's to accept.
KernelOptions parse_options(const std::string& given);

}  // namespace perdura::fs::fuse
