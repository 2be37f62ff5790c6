// Detects this machine's properties as a responder from what Linux reports: its persistence domain,
// the transport and the features of its RDMA devices ("Correct, Fast Remote Persistence", Table 1
// and section 3.4), and whether programs can map its persistent memory directly (DAX). Must run on
// the machine whose memory is to be written.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "methods/method.h"
#include "methods/rdma_device.h"

namespace perdura::methods {

// A property and the evidence for it, or the reason why it is unknown.
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
  // FLUSH for global visibility. This and the next two hold for all RDMA devices.
  Detected<bool> flush;
  Detected<bool> flush_persistence;
  Detected<bool> atomic_write;
  Detected<bool> device_dax;       // at least one device of persistent memory has it
  Detected<bool> file_system_dax;  // a mounted file system has it for all of its files
};

// True if `root` has a /sys with devices in it. If it has none, as in some containers, a device
// that is not found there may exist nevertheless.
bool shows_sysfs(const std::filesystem::path& root);

// Reads below `root`/sys and `root`/proc, and queries each RDMA device for its features. A property
// is unknown if it differs between regions or devices, or if one of them does not report it; the
// caller must then choose one of them.
Detection detect(const std::filesystem::path& root = "/",
                 const FeaturesOf& features_of = query_rdma_device);

// The features that a method may use. Unknown features of this machine's devices count as missing.
// On a machine without a device the question can only concern another machine, so the defaults
// apply.
DeviceFeatures usable_features(const Detection& found);

}  // namespace perdura::methods
