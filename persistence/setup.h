// What the two sides of remote persistence agree on: the method, and how large updates are.
#pragma once

#include <cstdint>
#include <string>

#include "persistence/method.h"
#include "platform/base/error.h"
#include "platform/base/units.h"
#include "platform/fabric/types.h"
#include "platform/pmem/model/persistence.h"

namespace perdura::persistence {

// The two sides were given different options, or those of now differ from those that persistent
// memory was made with: trying again does not help.
struct OptionsDiffer : UsageError {
  using UsageError::UsageError;
};

// The responder has another setup than the requester asks for.
struct SetupDiffers : OptionsDiffer {
  SetupDiffers(const std::string& what, const Method* its_method, std::uint32_t its_largest_a)
      : OptionsDiffer(what), method(its_method), largest_a(its_largest_a) {}
  const Method* method;  // one of methods(), or null
  std::uint32_t largest_a;
};

struct PersisterSetup {
  Method method;
  std::uint32_t largest_a = 64;  // bytes
  std::uint32_t largest_b = 8;   // bytes; only of ordered methods

  // The responder's receive buffers (RQWRBs): how many of each session, and where.
  std::uint32_t receive_buffers = 64;
  pmem::Medium receive_medium = pmem::Medium::dram;
  std::uint32_t sessions = 1;  // requesters that may be connected at once

  // Bytes of a receive buffer, a multiple of a cache line.
  Bytes buffer_size() const;
  // A checksum of the method's steps, to notice that the two sides run different ones.
  std::uint32_t method_checksum() const;
};

// Whether SENDs carry data that no step of the responder copies: then the responder does that in
// the background, and until it has, the receive buffer holds the only copy.
bool is_applied_later(const Method& method);

// Throws UsageError if a step is none that the interpreter runs, if the device lacks an operation
// (`write-flush` on one without FLUSH: see with_read_for_flush), or if sizes are impossible.
void check(const PersisterSetup& setup, const fabric::Capabilities& device);
// Whether the region is small enough for what the method can name in it. Throws UsageError.
void check_region(const PersisterSetup& setup, Bytes region_size);

}  // namespace perdura::persistence
