// A client's mount of an Orion file system; shared by the threads of its node.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "services/fs/fs.h"
#include "systems/orion/client/holds.h"
#include "systems/orion/protocol/counted.h"
#include "systems/orion/protocol/parameters.h"

namespace perdura::systems::orion {

class FileSystem final : public fs::FileSystem, public std::enable_shared_from_this<FileSystem> {
 public:
  FileSystem(Node& node, std::string name, fs::FsConfig config, const Parameters& parameters);

  // Throws PlatformError if the MDS cannot be reached.
  Task<> probe(Thread& thread);

  std::unique_ptr<fs::Session> attach(Thread& thread) override;
  Task<> unmount() override;
  std::vector<std::uint64_t> events() const override;
  // The servers have all that could contradict itself.
  Task<std::string> audit() override { co_return std::string(); }

  const fs::FsConfig& config() const { return config_; }
  const Parameters& parameters() const { return parameters_; }
  NodeId mds() const { return mds_; }
  std::uint64_t mount() const { return mount_; }
  Holds& holds() { return holds_; }
  // The pages of this node's store, if it has one.
  pmem::Region* local_pages() { return local_.get(); }
  void count(Counted what, std::uint64_t times) {
    counts_[static_cast<std::size_t>(what)].fetch_add(times, std::memory_order_relaxed);
  }

 private:
  std::string name_;
  fs::FsConfig config_;
  Parameters parameters_;
  NodeId mds_ = 0;
  std::uint64_t mount_ = 0;   // its number at the MDS
  Thread* thread_ = nullptr;  // that mounted, and unmounts
  std::unique_ptr<pmem::Region> local_;
  Holds holds_;
  std::array<std::atomic<std::uint64_t>, kEventCount> counts_{};
};

}  // namespace perdura::systems::orion
