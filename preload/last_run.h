// Between two runs anything may have happened to the files: a program has changed one of them
// without Mojim, one was lost, a mirror was taken as the primary, the last run was killed. A run
// begins with what the last one has left, or with the file that it is told to take; it never throws
// away bytes that it cannot account for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "preload/cluster.h"
#include "preload/run_record.h"

namespace perdura::preload {

// The difference between the contents of two files.
struct Difference {
  Bytes bytes = 0;  // 0: they are equal
  Bytes pages = 0;
  Bytes first = 0;  // offset
};
// Bytes beyond the end of the shorter one count as different unless they are zero; a file that does
// not exist is empty.
Difference difference(const std::string& a, const std::string& b);

// The file whose contents are taken where files differ.
enum class Take : std::uint8_t { primary, mirror };

// Throws UsageError, without having changed anything, if the files of the cluster cannot have the
// size: one is longer, or is replicated with another size, or there is no room.
void check_sizes(const Cluster& cluster, std::optional<Take> take);

// Decides what the run begins with; the files must be locked. If they are as the last run has left
// them, Mojim's logs say what is valid, and nothing is done. Otherwise, unless all have the same
// contents: if nothing is to be taken, throws UsageError, which says how they differ; else gives
// the primary's file the contents that are taken. True if all copies are to begin anew with it.
bool begin_where_last_run_ended(const Cluster& cluster, std::optional<Take> take);

// Makes the files of all copies, or none: after a failure, what was made is removed again.
void make_copies(const Cluster& cluster);

// The records of a run, in the files of all nodes.
class ThisRun {
 public:
  // Records that the run has begun. `anew`: Mojim's logs do not count anymore, and are removed.
  ThisRun(const Cluster& cluster, bool anew);
  // Records that all copies have been given the primary's file, if it is replicated already.
  void note_serving();
  // Nothing has been replicated: restores the records of the run before.
  void forget();
  // Records the end. `complete`: by node, true for the primary and for a copy that may be promoted.
  void end(RunRecord::End end, const std::vector<bool>& complete);

 private:
  RunRecord record_of(NodeId node, RunRecord::End end) const;

  Cluster cluster_;
  std::string run_ = new_run();
  std::vector<std::optional<RunRecord>> before_;
};

}  // namespace perdura::preload
