// The metadata server: all metadata of an Orion file system, on one node (section 4.1.1). If it has a
// mirror, it belongs to a PairMember (pair.h).
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
  // The same in memory that a mirror follows.
  static Task<std::shared_ptr<Mds>> open(Thread& thread, std::string name,
                                         const fs::FsConfig& config, Parameters parameters,
                                         std::unique_ptr<Mirror> mirror);

  Task<> serve(Thread& thread) override { return serve(thread, true); }
  // Without `accepts`, accept() has to be called on the thread for each connection request.
  Task<> serve(Thread& thread, bool accepts);
  void accept(fabric::ConnectionRequest& request);
  Metadata& metadata() { return *metadata_; }
  std::vector<std::uint64_t> events() const override;
  std::vector<double> metrics() const override;
  bool has_metadata() const override { return !metadata_->has_failed(); }
  std::string damage() const override { return metadata_->volume().damage(); }
  Task<std::string> audit() override { co_return metadata_->volume().audit(); }

 private:
  Mds(std::string name, Parameters parameters)
      : name_(std::move(name)),
        parameters_(std::move(parameters)),
        network_(parameters_.network_threads) {}

  void start(Node& node);

  std::string name_;
  Parameters parameters_;
  std::unique_ptr<Metadata> metadata_;
  std::vector<FsThread> fs_threads_;
  std::vector<std::shared_ptr<NetworkThread>> network_;  // by port
};

}  // namespace perdura::systems::orion
