// Makes file systems, so that a place has a whole one at any moment: the old one, or the new one.
#pragma once

#include "library/fs/place.h"

namespace perdura::fs {

// Makes an empty file system of `config` under another name in the place's folder,
// PLACE.new-PROCESS-0, and then gives it the place's name, durably. If a signal such as SIGINT ends
// the process meanwhile, that is removed; what a process that was killed has left there is removed
// by the next one. A region of a DAX device, which cannot be renamed, is made
// in its place: an old one is removed before.
//
// `replaces`: what is there, unless somebody uses it. Returns the size that it has, in whole
// blocks. Throws UsageError if the place is taken or used, or if there is no room for it beside an
// old one.
Bytes make(const FsSystem& system, const Place& place, const FsConfig& config, bool replaces);

// Whether all of its memory has been taken by make(), so that first writes are as fast as later
// ones: on tmpfs and DAX. A disk's pages come into memory one by one, when they are used.
bool is_in_memory(const Place& place);

}  // namespace perdura::fs
