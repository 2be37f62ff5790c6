// What Linux reports about this machine as a responder: its persistence domain, the transport and
// the features of its RDMA devices ("Correct, Fast Remote Persistence", Table 1 and section 3.4),
// and whether programs can map its persistent memory directly (DAX). Must run on the machine whose
// memory is to be written.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "persistence/method.h"
#include "persistence/rdma_device.h"

namespace perdura::persistence {

// A property and how it is known, or the reason for which it is unknown.
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
  Detected<bool> flush;  // for global visibility; this and the next two hold for all RDMA devices
  Detected<bool> flush_persistence;
  Detected<bool> atomic_write;
  Detected<bool> device_dax;       // of persistent memory, for at least one device
  Detected<bool> file_system_dax;  // of a mounted file system, for all of its files
};

// Whether `root` has a /sys with devices in it. If it has none, as in some containers, a device
// that is not found there may exist all the same.
bool shows_sysfs(const std::filesystem::path& root);

// Reads below `root`/sys and `root`/proc, and asks each RDMA device for its features. A property
// that differs between regions or devices, or of which one of them says nothing, is unknown; the
// caller must name one of them.
Detection detect(const std::filesystem::path& root = "/",
                 const FeaturesOf& features_of = query_rdma_device);

// The features that a method may use. Those of this machine's devices that are unknown count as
// missing. A machine without a device can only be asking about another machine, so the defaults
// hold.
DeviceFeatures usable_features(const Detection& found);

}  // namespace perdura::persistence
