// Redo Logging, the baseline with CPU involvement of the Erda paper (section 5.1): a client SENDs a
// record to the redo log of the server, which verifies it and applies it to its destination later.
// docs/systems/redo-logging.md describes what the paper leaves open.
#pragma once

#include "services/kv/kv.h"

namespace perdura::systems {

extern const kv::KvSystem kRedoLogging;

}  // namespace perdura::systems
