// Short names for the responders that the tests speak of.
#pragma once

#include "methods/proof.h"

namespace perdura::methods {

constexpr Configuration on(pmem::PersistenceDomain domain, bool ddio,
                           pmem::Medium buffers = pmem::Medium::dram,
                           pmem::Transport transport = pmem::Transport::infiniband) {
  return {{domain, ddio, transport}, buffers};
}
constexpr auto kDmp = pmem::PersistenceDomain::dmp;
constexpr auto kMhp = pmem::PersistenceDomain::mhp;
constexpr auto kWsp = pmem::PersistenceDomain::wsp;

}  // namespace perdura::methods
