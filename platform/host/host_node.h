// What the nodes of the real platforms share: their persistent memory is in mapped files, their
// threads are those of this process.
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "platform/host/thread_executor.h"
#include "platform/platform.h"
#include "platform/pmem/mapped/mapping.h"
#include "platform/pmem/mapped/thread_meter.h"

namespace perdura {

// Where a node's threads run and its memory is; what is not said: anywhere.
struct Placement {
  // The n-th thread of a run is pinned to the n-th core, beginning again behind the last;
  // background threads, to all of them together.
  std::vector<unsigned> cores{};
  // Of its regions, and of what its threads allocate (platform/host/numa.h).
  std::optional<unsigned> numa_node{};
};

// Keeps the calling thread, and those that it starts from now on, on these cores; an empty list
// changes nothing. False if this process may use none of them.
bool pin_this_thread(const std::vector<unsigned>& cores);

// What other threads may ask of one of a node's threads; stays when the thread has ended.
struct alignas(kCacheLine) ThreadUse {
  pmem::mapped::PublishedWrites writes;
  std::mutex mutex;
  pthread_t thread{};
  bool running = false;
  Picoseconds cpu_time{0};  // once it has ended

  void begin();  // these two are called by the thread itself
  void end();
  Picoseconds cpu_time_so_far();
};

// Lets other threads see this one's writes, once a turn of its executor.
class WritesPublisher final : public runtime::Poller {
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

// Is given the executor and the endpoint of a thread, on that thread.
using RunThread = std::function<void(runtime::ThreadExecutor&, fabric::Endpoint&)>;

class HostNode : public Node {
 public:
  // What the platform does for a node's background threads.
  struct Threads {
    // As HostPlatform's with_endpoint().
    std::function<void(fabric::Port, const RunThread&)> with_endpoint;
    // Ends the run.
    std::function<void(std::exception_ptr)> fail;
  };

  // `clock`: the platform's. Persistent memory is in files of `pm_directory`/node-N/, or
  // in a DAX device as regions so named. Throws
  // UsageError if that cannot be created.
  HostNode(const runtime::HostClock& clock, NodeId id, const std::string& pm_directory,
           pmem::WriteMeter::Level accounting, Placement placement);

  NodeId id() const override { return id_; }
  // Names of PM regions consist of letters, digits, '.', '-' and '_'. Names of DRAM regions serve
  // messages only and need not differ.
  std::unique_ptr<pmem::Region> create_region(std::string_view name, Bytes size,
                                              pmem::Medium medium) override;
  std::unique_ptr<pmem::Region> create_region_at(MemoryPlace place, std::string_view name,
                                                 Bytes size, pmem::Medium medium) override;
  std::unique_ptr<pmem::Region> open_region(std::string_view name) override;
  void remove_region(std::string_view name) override;
  std::unique_ptr<BackgroundThread> start_background_thread(
      std::optional<fabric::Port> port) override;

  Picoseconds cpu_time() const override;
  // Up to date for the calling thread, for threads that have ended, and for others as of the last
  // turn of their executor: exact while they wait in a barrier.
  pmem::Writes pm_writes() const override;

  const std::string& pm_directory() const { return pm_directory_; }
  const Placement& placement() const { return placement_; }
  const runtime::HostClock& clock() const { return clock_; }
  pmem::WriteMeter::Level accounting() const { return accounting_; }
  const Threads& threads() const { return of_platform_; }
  void set_threads(Threads of_platform) { of_platform_ = std::move(of_platform); }
  ThreadUse& add_thread();

 protected:
  // New DRAM for a region, and the path of its file if it has one. Throws UsageError if its pages
  // cannot be chosen.
  struct Dram {
    std::shared_ptr<pmem::mapped::Mapping> mapping;
    std::string path{};
  };
  virtual Dram create_dram(std::string_view name, Bytes size, pmem::Pages pages) = 0;
  // A region came into being; what is returned lives until it goes away.
  virtual std::shared_ptr<void> adopt(const std::string& path, pmem::Medium medium,
                                      std::shared_ptr<pmem::mapped::Mapping> mapping) = 0;

 private:
  std::unique_ptr<pmem::Region> make_region(std::string name, pmem::Medium medium,
                                            const std::string& path,
                                            std::shared_ptr<pmem::mapped::Mapping> mapping);
  std::string pm_path(std::string_view name) const;

  runtime::HostClock clock_;
  NodeId id_;
  std::string pm_directory_;
  pmem::WriteMeter::Level accounting_;
  Placement placement_;
  Threads of_platform_;
  mutable std::mutex mutex_;
  mutable std::deque<ThreadUse> threads_;
};

// Where the calling thread publishes its writes; null if it belongs to no node.
inline thread_local ThreadUse* current_thread_use = nullptr;

}  // namespace perdura
