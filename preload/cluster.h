// A file that Mojim replicates, and the cluster of processes of one host that do it: the
// application is the primary, and each copy has a process of its own (the platform `shm`).
//
// Each node has a folder beside its file, FILE.mojim, with the file itself under the name that the
// service knows, and the log of a copy:
//
//   accounts.db                     of the application, or a copy that others may read
//   accounts.db.mojim/data          the same file (a hard link)
//   accounts.db.mojim/data.logs     the logs of Mojim
//   accounts.db.mojim/readers       who reads the copy meanwhile (shared_readers.h)
//
// A copy whose file is on a disk (m-syncdisk) has the file once more, and its log may be elsewhere,
// where there is persistent memory:
//
//   accounts.db.mojim/.disk/data.disk   the same file (a hard link)
//   accounts.db.mojim/log               leads to the folder with data.logs (a symbolic link)
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "platform/shm/shm_platform.h"
#include "preload/state_folder.h"
#include "services/memory/memory.h"

namespace perdura::preload {

struct Cluster {
  std::string job;                 // names the cluster; processes with the same name meet
  std::string mode;                // "m-sync"
  Bytes size = 0;                  // size of the file, whole pages
  std::vector<std::string> files;  // absolute paths, by node: the primary's, the mirror's, ...
  std::string log{};               // an absolute path: the folder of the mirror's log; or empty
  // The persistence domain ("dmp") and DDIO of all nodes, for which what is acknowledged is durable
  // (methods/chooser.h). Empty: persistence as in the paper.
  std::string domain = "dmp";
  bool ddio = true;

  // Read from and written to the environment of a process (PERDURA_MOJIM_*), by which an
  // application's process learns of the cluster. Throws UsageError if a variable is missing or
  // makes no sense.
  static Cluster from_environment();
  std::vector<std::string> environment() const;  // "NAME=VALUE"

  // Throws UsageError if there is no such mode, or if it needs other nodes.
  const services::MemorySystem& system() const;
  services::MemoryConfig config() const;
  services::MemoryRole role(NodeId node) const;
};

// Creates the node's file, if there is none, and its folder. The file of a primary is the
// application's, which must exist, and may be shorter; it gets its whole size here. Throws
// UsageError if the file is longer, or is not the one that the folder belongs to.
void prepare_files(const Cluster& cluster, NodeId node);

// Joins the cluster as these nodes of it; with an empty list, as all nodes, without other
// processes.
std::unique_ptr<ShmPlatform> join(const Cluster& cluster, std::vector<NodeId> nodes);

// On a copy: receives what the application syncs, until the primary's process has ended. Calls
// `serves` when it can be connected to. If nobody has the other end of the pipe `life` anymore,
// ends this process: no primary is going to connect.
void serve_copy(const Cluster& cluster, NodeId node, int life, const std::function<void()>& serves);
// Applies the sync points that had arrived at a copy, whose file no process may have open. Then the
// file holds every sync point that it has received, whole. `missed`: its process was gone before
// the application had ended. False if the copy is incomplete, because the file was still being
// copied to it, or because it has missed something for which nobody waits.
bool recover_copy(const Cluster& cluster, NodeId node, bool missed);

}  // namespace perdura::preload
