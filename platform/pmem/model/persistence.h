// What of a node survives a power failure.
#pragma once

#include <cstdint>
#include <string_view>

namespace perdura::pmem {

// How far the platform's guarantee reaches from the medium toward the writer.
enum class PersistenceDomain : std::uint8_t {
  dmp,  // DIMMs and the memory controller's write-pending queue; caches are lost (ADR)
  mhp,  // the memory hierarchy: caches, too (eADR)
  wsp,  // the whole system: also what the network device has accepted (batteries)
};

struct PersistenceModel {
  PersistenceDomain domain = PersistenceDomain::dmp;
  // Whether the device places messages into the last-level cache (Data Direct I/O) or past it.
  bool ddio = false;
};

constexpr std::string_view to_string(PersistenceDomain domain) {
  switch (domain) {
    case PersistenceDomain::dmp:
      return "dmp";
    case PersistenceDomain::mhp:
      return "mhp";
    case PersistenceDomain::wsp:
      break;
  }
  return "wsp";
}

}  // namespace perdura::pmem
