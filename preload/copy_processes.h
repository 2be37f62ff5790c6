// The processes that serve the copies of a run. They end with this object, however the run goes on.
// If the run is killed, they end with its primary, which ends when no program uses the file
// anymore.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "platform/pmem/mapped/mapping.h"
#include "preload/cluster.h"

namespace perdura::preload {

class CopyProcesses {
 public:
  // Returns when all of them serve. Throws PlatformError if one does not. `program`: perdura
  // itself.
  CopyProcesses(const Cluster& cluster, const std::string& program);
  ~CopyProcesses();
  CopyProcesses(const CopyProcesses&) = delete;
  CopyProcesses& operator=(const CopyProcesses&) = delete;

  // By node, from the first copy on: true if its process has been killed or stopped, so that it may
  // have missed something.
  std::vector<bool> gone() const;

  // The copies' processes end by themselves when no process has this descriptor anymore.
  int life() const { return life_.get(); }

 private:
  void start(const Cluster& cluster, const std::string& program);
  // Kills them, and removes the job that they leave if nobody else is in it.
  void end();

  std::vector<pid_t> processes_;
  pmem::mapped::File life_;
};

}  // namespace perdura::preload
