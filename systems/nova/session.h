// Implements the service's interface on a mounted volume.
#pragma once

#include "systems/nova/operations.h"

namespace perdura::systems::nova {

class FileSystem final : public fs::FileSystem, public std::enable_shared_from_this<FileSystem> {
 public:
  // `ownership` is the exclusive ownership of the region; it is kept while the file system is
  // mounted.
  FileSystem(std::unique_ptr<pmem::Region> region, std::shared_ptr<void> ownership,
             std::unique_ptr<Volume> volume)
      : region_(std::move(region)), ownership_(std::move(ownership)), volume_(std::move(volume)) {}

  std::unique_ptr<fs::Session> attach(Thread& thread) override;
  Task<> unmount() override;
  std::vector<std::uint64_t> events() const override;
  std::string damage() const override { return volume_->damage(); }
  Task<std::string> audit() override;

  Volume& volume() { return *volume_; }

 private:
  std::unique_ptr<pmem::Region> region_;
  std::shared_ptr<void> ownership_;
  std::unique_ptr<Volume> volume_;
};

}  // namespace perdura::systems::nova
