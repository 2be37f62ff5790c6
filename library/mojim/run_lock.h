// Two runs on the same file would each take what the other one syncs for changes of nobody: only
// one at a time may have any file of a cluster.
#pragma once

#include <string>
#include <vector>

namespace perdura::mojim {

// Locks FILE.mojim/lock of each file, and makes FILE.mojim for that. The kernel gives the locks
// back when no process has them any more, however it ended.
class RunLock {
 public:
  // Throws UsageError if another run has one of the files; nothing new is left then. The processes
  // of one that was killed are waited for, since they end by themselves.
  explicit RunLock(const std::vector<std::string>& files);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  // Whether processes that are started from now on have the locks, too: the copies and the primary
  // go on when the run is killed, and the files are theirs until they end.
  void share_with_children(bool shared) const;

 private:
  void lock(const std::string& file);
  void give_back();

  std::vector<int> descriptors_;
  std::vector<std::string> made_;  // folders
};

}  // namespace perdura::mojim
