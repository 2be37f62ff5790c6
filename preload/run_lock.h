// Allows only one run at a time to use any file of a cluster: two runs on the same file would each
// take what the other one syncs for changes made without Mojim.
#pragma once

#include <string>
#include <vector>

namespace perdura::preload {

// Locks FILE.mojim/lock of each file, and creates FILE.mojim for that. The kernel releases the
// locks when no process has them anymore, however it ended.
class RunLock {
 public:
  // Throws UsageError if another run has one of the files; nothing new is left then. The processes
  // of a killed run are waited for, since they end by themselves.
  explicit RunLock(const std::vector<std::string>& files);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  // Says if processes that are started from now on hold the locks, too: the copies and the primary
  // go on when the run is killed, and the files are theirs until they end.
  void share_with_children(bool shared) const;

 private:
  void lock(const std::string& file);
  void give_back();

  std::vector<int> descriptors_;
  std::vector<std::string> made_;  // folders
};

}  // namespace perdura::preload
