// The common base of the nodes of the real platforms: their persistent memory is in mapped files
// (or DAX devices), and their threads are threads of this process.
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "platform/child_process.h"
#include "platform/host/thread_executor.h"
#include "platform/platform.h"
#include "platform/pmem/mapped/mapping.h"
#include "platform/pmem/mapped/thread_meter.h"

namespace perdura {

// Where a node's threads run and where its memory is. Empty members mean anywhere.
struct Placement {
  // Each thread is pinned to that of these cores which has the fewest threads of the node, the
  // first in case of a tie. Background threads may run on all of these cores.
  std::vector<unsigned> cores{};
  // The NUMA node of its regions and of the memory that its threads allocate
  // (platform/host/numa.h).
  std::optional<unsigned> numa_node{};
};

// Restricts the calling thread, and threads that it starts from now on, to these cores; an empty
// list changes nothing. Returns false if this process may use none of them.
bool pin_this_thread(const std::vector<unsigned>& cores);

// The CPU time and writes of one of a node's threads, for other threads to read. It outlives the
// thread.
struct alignas(kCacheLine) ThreadUse {
  pmem::mapped::PublishedWrites writes;
  std::mutex mutex;
  pthread_t thread{};
  bool running = false;
  Picoseconds cpu_time{0};  // total, set when the thread ends

  void begin();  // begin() and end() are called by the thread itself
  void end();
  Picoseconds cpu_time_so_far();
};

// Publishes the thread's write counts once per turn of its executor.
class WritesPublisher final : public host::Poller {
 public:
  explicit WritesPublisher(ThreadUse& use) : use_(use) {}
  bool poll() override {
    use_.writes.publish(meter_.writes());
    return false;
  }

 private:
  ThreadUse& use_;
  pmem::WriteMeter& meter_ = pmem::thread_write_meter();
};

// A function that is called on a new thread, with that thread's executor and endpoint.
using RunThread = std::function<void(host::ThreadExecutor&, fabric::Endpoint&)>;

class HostNode : public Node, public ChildProcesses {
 public:
  // The directory of the nodes of a machine below that of the whole job.
  static std::string directory_of(const std::string& job_directory, NodeId machine);

  // Functions of the platform that a node's background threads need.
  struct Threads {
    // See HostPlatform::with_endpoint().
    std::function<void(fabric::Port, const RunThread&)> with_endpoint;
    // Ends the run with this error.
    std::function<void(std::exception_ptr)> fail;
  };

  // `clock`: the platform's clock. Persistent memory is in files in `pm_directory` or, in a DAX
  // device, in regions whose names begin so; if it is empty, the node has none. Throws UsageError if
  // the directory cannot be created.
  // Regions on a disk are in files in `disk_directory`/node-N/, N being the number of the machine,
  // or, if it is empty, in a folder `.disk` of that of persistent memory.
  HostNode(const runtime::HostClock& clock, NodeId id, NodeId machine,
           const std::string& pm_directory, const std::string& disk_directory,
           pmem::WriteMeter::Level accounting, Placement placement);

  NodeId id() const override { return id_; }
  NodeId machine() const override { return machine_; }
  // Names of PM regions, and of those on a disk, are names of files that do not begin with '.'.
  // Names of DRAM regions are used only in messages and need not be unique.
  std::unique_ptr<pmem::Region> create_region(std::string_view name, Bytes size,
                                              pmem::Medium medium) override;
  std::unique_ptr<pmem::Region> create_region_at(MemoryPlace place, std::string_view name,
                                                 Bytes size, pmem::Medium medium) override;
  std::unique_ptr<pmem::Region> open_region(std::string_view name) override;
  void remove_region(std::string_view name) override;
  std::shared_ptr<void> own_region(std::string_view name, std::uint32_t part) override;
  std::unique_ptr<BackgroundThread> start_background_thread(std::optional<fabric::Port> port,
                                                            CompletionMode mode) override;
  Task<std::unique_ptr<ChildProcess>> start_child(ChildProgram program, ChildOrder order) override;

  Picoseconds cpu_time() const override;
  // Exact for the calling thread and for threads that have ended. For other threads, the counts are
  // those of the last turn of their executor, which are exact while they wait in a barrier.
  pmem::Writes pm_writes() const override;
  fabric::TrafficByNode traffic() const override { return traffic_.read(id_); }
  pmem::MemoryUse peak_memory() const override { return memory_use_.peak(); }

  fabric::TrafficMeter& traffic_meter() { return traffic_; }

  const std::string& pm_directory() const { return pm_directory_; }
  const Placement& placement() const { return placement_; }
  const runtime::HostClock& clock() const { return clock_; }
  pmem::WriteMeter::Level accounting() const { return accounting_; }
  const Threads& threads() const { return of_platform_; }
  // How regions of persistent memory are opened from now on.
  void set_access(pmem::mapped::Access access) { access_ = access; }
  void set_threads(Threads of_platform) { of_platform_ = std::move(of_platform); }
  ThreadUse& add_thread();

 protected:
  // Throws UsageError if it cannot name a file of the node.
  static void check_name(std::string_view name);
  // DRAM for a new region, and the path of its file if it has one. create_dram() throws UsageError
  // if this platform cannot choose the page size.
  struct Dram {
    std::shared_ptr<pmem::mapped::Mapping> mapping;
    std::string path{};
  };
  virtual Dram create_dram(std::string_view name, Bytes size, pmem::Pages pages) = 0;
  // Called for each new or opened region. The object that it returns is kept until the region is
  // destroyed.
  virtual std::shared_ptr<void> adopt(const std::string& path, pmem::Medium medium,
                                      std::shared_ptr<pmem::mapped::Mapping> mapping) = 0;

 private:
  std::unique_ptr<pmem::Region> make_region(std::string name, pmem::Medium medium,
                                            const std::string& path,
                                            std::shared_ptr<pmem::mapped::Mapping> mapping);
  // path_of(): the path of a region on the given medium. medium_of(): the medium of an existing
  // region.
  std::string path_of(std::string_view name, pmem::Medium medium) const;
  pmem::Medium medium_of(std::string_view name) const;

  runtime::HostClock clock_;
  NodeId id_;
  NodeId machine_;
  std::string pm_directory_;
  std::string disk_directory_;
  pmem::WriteMeter::Level accounting_;
  pmem::mapped::Access access_ = pmem::mapped::Access::in_place;
  Placement placement_;
  Threads of_platform_;
  fabric::TrafficMeter traffic_;
  pmem::MemoryMeter memory_use_;
  mutable std::mutex mutex_;
  mutable std::deque<ThreadUse> threads_;
};

// The place where the calling thread publishes its write counts; null if it belongs to no node.
inline thread_local ThreadUse* current_thread_use = nullptr;

}  // namespace perdura
