// What Linux tells of this machine as a responder: its persistence domain, its RDMA devices'
// transport. To be asked on the machine whose memory is written.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "systems/persistence/method.h"

namespace perdura::persistence {

// A property, and where it comes from; or why it is not known.
template <class Value>
struct Detected {
  std::optional<Value> value{};
  std::string reason{};
};

struct Detection {
  Detected<pmem::PersistenceDomain> domain;
  Detected<bool> ddio;
  Detected<pmem::Transport> transport;
  Detected<bool> device_dax;
};

// Reads below `root`/sys. What differs between several regions or devices is not known: name one.
Detection detect(const std::filesystem::path& root = "/");

}  // namespace perdura::persistence
