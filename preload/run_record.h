// The record that the last run of `perdura mojim` left for a node's file: FILE.mojim/run, beside
// each of the files.
//
// The logs of Mojim say what has been synced. They cannot say that somebody has changed a file
// without Mojim since, so a run that begins with the mirror would throw away newer data. So a run
// records, durably, that it has begun, and at its end how it ended and a checksum of each page of
// each file. The next one compares (last_run.h). The times of files are of no use: tools preserve
// them, and stores to a mapping change them late.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "preload/cluster.h"

namespace perdura::preload {

struct RunRecord {
  enum class End : std::uint8_t {
    anew,     // it began anew, and has not given the primary's file to all copies
    open,     // it has not ended, or was killed, or the power failed
    settled,  // all complete copies had the contents of the primary's file
    failed,   // a program or a copy was killed: what was synced is where Mojim's logs say
    unequal,  // the program ended in an orderly way, and yet the files differ
  };

  std::string run;  // unique for each run
  NodeId node = 0;  // the node that has this file
  Cluster cluster;  // the cluster of that run
  End end = End::open;
  bool is_complete = true;             // a copy that may be promoted
  Bytes size = 0;                      // the file's, at the end
  std::vector<std::uint64_t> pages{};  // checksums; none while the run is open

  // The record of a file; nothing if no run has left one. Throws UsageError if it cannot be
  // understood.
  static std::optional<RunRecord> read(const std::string& file);
  static void remove(const std::string& file);
  // Writes the record atomically; it is durable on return.
  void write(const std::string& file) const;

  // Records the contents of the file as those that this run has left.
  void note_contents(const std::string& file);
  // True if the file is as the run left it. False if the run has not ended.
  bool is_unchanged(const std::string& file) const;
};

// Returns a name for a new run.
std::string new_run();

}  // namespace perdura::preload
