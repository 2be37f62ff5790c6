// A file system that is as simple as one can be: a log of all calls in persistent memory, which a
// mount carries out again on the model. Right, or wrong in one of a few ways: what explorations of
// real ones must tell apart.
#pragma once

#include "services/fs/fs.h"

namespace perdura::fs::test {

extern const FsSystem kLogged;              // durable, atomic
extern const FsSystem kLoggedUnflushed;     // a record is not flushed before it counts
extern const FsSystem kLoggedTailFirst;     // a record counts before it is there
extern const FsSystem kLoggedUnfenced;      // an operation returns before its record counts
extern const FsSystem kLoggedInTwo;         // a rename is a link and an unlink
extern const FsSystem kLoggedForgetsTimes;  // recovery does not set the times of a truncate
extern const FsSystem kLoggedKeepsOrphans;  // and holds what is without a name for ever

}  // namespace perdura::fs::test
