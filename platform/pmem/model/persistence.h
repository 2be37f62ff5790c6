// The properties of a node that decide what survives a power failure.
#pragma once

#include <cstdint>
#include <string_view>

namespace perdura::pmem {

enum class Medium : std::uint8_t {
  dram,
  pm,
  // A file of an ordinary file system on a disk or an SSD, in the page cache of its machine. Like
  // pm, it outlives processes. After a power failure it holds the data whose write-back was
  // requested and then reported as done, and of other changes any words or none, whatever the
  // persistence domain of the machine's memory is.
  disk,
};

// Persistence domains: which stages between the writer and the medium keep their data when the
// power fails.
enum class PersistenceDomain : std::uint8_t {
  dmp,  // DIMMs and the memory controllers' write-pending queues, not the caches (ADR)
  mhp,  // the memory hierarchy: also the caches (eADR)
  wsp,  // the whole system: also what the RDMA device has accepted (batteries)
};

// The transport decides what the completion of a WRITE or SEND tells the requester.
enum class Transport : std::uint8_t {
  infiniband,  // and RoCE: the responder's device has the message
  iwarp,       // only that the requester's own transport has the message
};

struct PersistenceModel {
  PersistenceDomain domain = PersistenceDomain::dmp;
  // True if the device places messages into the last-level cache (Data Direct I/O), false if
  // directly into memory.
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
