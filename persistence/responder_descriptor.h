// What a machine is as a responder of remote persistence, in a form that can be sent: made on the
// machine whose memory is written, carried by any means to the one that writes, and there handed to
// the chooser, which then asks nothing of the machine that it runs on.
//
// As JSON, one object; a property whose value is null is not known, and the reason says why:
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

#include "persistence/detection.h"

namespace perdura::persistence {

struct ResponderDescriptor {
  std::string host{};    // as the machine calls itself; for people
  std::string device{};  // the RDMA device that it is about; empty: all that it has, or it has none
  Detected<pmem::PersistenceDomain> domain{};
  Detected<bool> ddio{};
  Detected<pmem::Medium> receive_buffers{};  // where the program that responds puts them
  Detected<pmem::Transport> transport{};
  Detected<bool> flush{};  // for global visibility
  Detected<bool> flush_persistence{};
  Detected<bool> atomic_write{};
};

// What was detected of this machine, with its name; nothing is known of the receive buffers.
ResponderDescriptor describe(const Detection& found);

std::string to_json(const ResponderDescriptor& descriptor);
// Properties that are left out are not known; others than those above are ignored, so that a newer
// version can say more. Throws UsageError in one line that says what is wrong.
ResponderDescriptor responder_from_json(std::string_view text);

// All that the responder may be, as far as the descriptor tells.
std::vector<Configuration> configurations(const ResponderDescriptor& descriptor);
// What a method may use of the responder's device: what is not known counts as missing.
DeviceFeatures usable_features(const ResponderDescriptor& descriptor);

}  // namespace perdura::persistence
