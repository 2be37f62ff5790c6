// The metadata server: all metadata of an Orion file system, on one node (section 4.1.1).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "services/fs/fs.h"
#include "systems/orion/mds/network_thread.h"

namespace perdura::systems::orion {

class Mds final : public fs::FsServer {
 public:
  // Opens the metadata on the thread's node, after recovery.
  static Task<std::shared_ptr<Mds>> open(Thread& thread, std::string name, Parameters parameters);

  Task<> serve(Thread& thread) override;
  std::vector<std::uint64_t> events() const override;
  std::vector<double> metrics() const override;
  std::string damage() const override { return metadata_->volume().damage(); }
  Task<std::string> audit() override { co_return metadata_->volume().audit(); }

 private:
  Mds(std::string name, Parameters parameters)
      : name_(std::move(name)), parameters_(parameters), network_(parameters.network_threads) {}

  std::string name_;
  Parameters parameters_;
  std::unique_ptr<Metadata> metadata_;
  std::vector<FsThread> fs_threads_;
  std::vector<std::shared_ptr<NetworkThread>> network_;  // by port
};

}  // namespace perdura::systems::orion
