// Makes file systems so that a source has an intact one at any time: the old one or the new one.
#pragma once

#include "mount/source.h"

namespace perdura::mount {

// Makes an empty file system by `config` under another name in the source's folder,
// SOURCE.new-PROCESS-0, and then durably gives it the source's name. The new file is removed if a
// signal such as SIGINT ends the process before that; the file of a process that was killed is
// removed by the next one. A region of a DAX device cannot be renamed, so it is made in place,
// after the old one has been removed.
//
// With `replaces`, replaces an existing file system that nobody uses. Returns the actual size, in
// whole blocks. Throws UsageError if the source is taken or in use, or if there is no room beside
// an old file system.
Bytes make(const fs::FsSystem& system, const MountSource& source, const fs::FsConfig& config,
           bool replaces);

// Returns true if make() has taken all of the memory, so that first writes are as fast as later
// ones: on tmpfs and DAX. Pages of a file on disk come into memory one by one, when they are used.
bool is_in_memory(const MountSource& source);

}  // namespace perdura::mount
