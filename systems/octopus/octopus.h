// Octopus, as far as it is needed as a rival of Orion: a file system in the persistent memory of a
// server, which clients use by full paths ("Octopus: an RDMA-enabled Distributed Persistent Memory
// File System", Lu, Shu, Chen, Li, USENIX ATC 2017). Orion's chapter compares itself with it and says
// what it is: "it maintains all files and directories in a per-server hash table indexed by their full
// path names and it assigns a fixed number of file extents and directory entries to each file and
// directory" (Yang's thesis, section 4.4.2).
//
// These parts are as in the paper:
//   - the hash table of full paths, in persistent memory (section 3.1): an operation looks up one
//     path, or two if it changes the parent, however deep they are
//   - client-active data I/O (section 3.2): a read or write asks the server for the address of the
//     range, and moves the data itself by a one-sided READ or WRITE
//   - self-identified metadata RPC (section 3.3): a client WRITEs its request with an immediate into a
//     slot of its own in the server's message pool; the immediate names the client and the slot, so
//     the server finds the message without searching the pool. The answer is written into the client's
//     slot in the same way
//   - the numbers of the published code (github.com/thustorage/octopus): paths of at most 255 bytes,
//     60 entries in a directory, answers of 4 KiB
//
// These are simplifications of this baseline, and not the paper's:
//   - one server, so there are neither distributed transactions ("collect-dispatch") nor files over
//     several servers
//   - no rename, no links, no permissions. A file that is removed while others have it open is gone
//   - one extent for each file, where the published code has up to 20 of 1 MiB. A write that extends a
//     file finds its range zeroed, so that nobody reads what a removed file had there
//   - no locks for data: the published code locks a range for as long as a client uses it. A reader
//     may see a part of a write that is under way. The extent of a removed file is not reused before
//     those who have been given its address have finished with it
//   - a write that stays within the file changes no metadata, also no time
//
// Guarantees: an operation on names and a change of a size or time is durable when it returns,
// given that flushed lines are (the server flushes what it changes before it answers), and atomic, but
// for the time of the parent directory, which a failure may leave as it was. Written data is
// acknowledged by the server's device and not forced, as in the paper; it is durable after sync(). It
// is not atomic. A test tries failures of the server's power in one sequence of operations
// (tests/systems/octopus); the system is not in explore/explored.csv, so its rows of results state no
// guarantee.
#pragma once

#include "services/fs/fs.h"

namespace perdura::systems {

// It has no inodes, so it is not in the table of the service `fs`: its FileSystem is an
// octopus::FileSystem (systems/octopus/file_system.h), whose clients are attached by connect().
extern const fs::FsSystem kOctopus;

}  // namespace perdura::systems
