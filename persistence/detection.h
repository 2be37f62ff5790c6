// What Linux tells of this machine as a responder: its persistence domain, its RDMA devices'
// transport and features ("Correct, Fast Remote Persistence", Table 1 and section 3.4), and whether
// programs can map its persistent memory itself (DAX). To be asked on the machine whose memory is
// written.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "persistence/method.h"
#include "persistence/rdma_device.h"

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
  bool has_rdma_device = false;
  Detected<bool> flush;  // for global visibility; of all RDMA devices, as are the next two
  Detected<bool> flush_persistence;
  Detected<bool> atomic_write;
  Detected<bool> device_dax;
  Detected<bool> file_system_dax;  // of a mounted file system, for all its files
};

// Reads below `root`/sys and `root`/proc, and asks each RDMA device for its features. What differs
// between several regions or devices is not known: name one.
Detection detect(const std::filesystem::path& root = "/",
                 const FeaturesOf& features_of = query_rdma_device);

// What a method may use of the devices: what is not known of those of this machine counts as
// missing. A machine without any can only be asked about another one, for which the defaults hold.
DeviceFeatures usable_features(const Detection& found);

}  // namespace perdura::persistence
