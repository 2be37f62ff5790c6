// A description of a machine as a responder of remote persistence, in a form that can be sent. It
// is created on the machine whose memory is to be written, transferred by any means, and passed to
// the chooser on the writing machine, which then queries nothing about its own machine.
//
// The JSON form is one object. A property whose value is null is unknown, and its reason says why:
//
//   {"perdura_responder": 1, "host": "node7", "device": "mlx5_0",
//    "domain": {"value": "dmp", "reason": "region0 says memory_controller"},      dmp, mhp, wsp
//    "ddio": {"value": null, "reason": "..."},                                    true, false
//    "receive_buffers": {...},                                                    "dram", "pm"
//    "transport": {...},                                        "infiniband" (and RoCE), "iwarp"
//    "flush": {...}, "flush_persistence": {...}, "atomic_write": {...}}           true, false
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "methods/detection.h"

namespace perdura::methods {

struct ResponderDescriptor {
  std::string host{};    // name of the machine, for people
  std::string device{};  // the RDMA device described; empty: all of the machine's devices, or none
  Detected<pmem::PersistenceDomain> domain{};
  Detected<bool> ddio{};
  Detected<pmem::Medium> receive_buffers{};  // where the responding program puts them
  Detected<pmem::Transport> transport{};
  Detected<bool> flush{};  // FLUSH for global visibility
  Detected<bool> flush_persistence{};
  Detected<bool> atomic_write{};
};

// Describes what was detected on this machine, with its name. The receive buffers are unknown.
ResponderDescriptor describe(const Detection& found);

std::string to_json(const ResponderDescriptor& descriptor);
// Missing properties are unknown, and additional ones are ignored, so that a newer version may add
// some. Throws UsageError, whose single line says what is wrong.
ResponderDescriptor responder_from_json(std::string_view text);

// All configurations that match the descriptor.
std::vector<Configuration> configurations(const ResponderDescriptor& descriptor);
// The features of the responder's device that a method may use; unknown ones count as missing.
DeviceFeatures usable_features(const ResponderDescriptor& descriptor);

}  // namespace perdura::methods
