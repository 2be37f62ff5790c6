// What of a node survives a power failure.
#pragma once

#include <cstdint>
#include <string_view>

namespace perdura::pmem {

enum class Medium : std::uint8_t { dram, pm };

// How far the platform's guarantee reaches from the medium toward the writer.
enum class PersistenceDomain : std::uint8_t {
  dmp,  // DIMMs and the memory controller's write-pending queue; caches are lost (ADR)
  mhp,  // the memory hierarchy: caches, too (eADR)
  wsp,  // the whole system: also what the network device has accepted (batteries)
};

// What the completion of a WRITE or SEND tells the requester.
enum class Transport : std::uint8_t {
  infiniband,  // and RoCE: the responder's device has it
  iwarp,       // the requester's own transport has it
};

struct PersistenceModel {
  PersistenceDomain domain = PersistenceDomain::dmp;
  // Whether the device places messages into the last-level cache (Data Direct I/O) or past it.
  bool ddio = false;
  Transport transport = Transport::infiniband;

  friend bool operator==(const PersistenceModel&, const PersistenceModel&) = default;
};

constexpr std::string_view to_string(PersistenceDomain domain) {
  constexpr std::string_view kNames[] = {"dmp", "mhp", "wsp"};
  return kNames[static_cast<int>(domain)];
}
constexpr std::string_view to_string(Transport transport) {
  return transport == Transport::infiniband ? "infiniband" : "iwarp";
}

}  // namespace perdura::pmem
