// The parameters that the two sides of remote persistence must agree on: the method and the largest
// sizes of updates.
#pragma once

#include <cstdint>
#include <string>

#include "methods/method.h"
#include "platform/base/error.h"
#include "platform/base/units.h"
#include "platform/fabric/types.h"
#include "platform/pmem/model/persistence.h"

namespace perdura::methods {

// Thrown if the options of the two sides differ, or differ from those with which the contents of
// persistent memory were created. Retrying does not help.
struct OptionsDiffer : UsageError {
  using UsageError::UsageError;
};

// Thrown if the responder's setup is not the one that the requester asks for.
struct SetupDiffers : OptionsDiffer {
  SetupDiffers(const std::string& what, const Method* its_method, std::uint32_t its_largest_a)
      : OptionsDiffer(what), method(its_method), largest_a(its_largest_a) {}
  const Method* method;  // one of methods(), or null
  std::uint32_t largest_a;
};

struct PersisterSetup {
  Method method;
  std::uint32_t largest_a = 64;  // bytes
  std::uint32_t largest_b = 8;   // bytes; for methods with two updates; 8 for one that publishes

  // The responder's receive buffers (RQWRBs): their number for each session, and their memory.
  std::uint32_t receive_buffers = 64;
  pmem::Medium receive_medium = pmem::Medium::dram;
  std::uint32_t sessions = 1;  // maximum number of connected requesters

  // The size of a receive buffer in bytes, a multiple of a cache line.
  Bytes buffer_size() const;
  // A checksum of the method's steps. It reveals that the two sides run different methods.
  std::uint32_t method_checksum() const;
};

// True if SENDs carry data that no step of the responder copies. The responder then copies it in
// the background, and until it has, the receive buffer holds the only copy.
bool is_applied_later(const Method& method);

// Throws UsageError if the interpreter does not support a step, if the device lacks an operation
// (`write-flush` on a device without FLUSH: see with_read_for_flush), or if sizes are impossible.
void check(const PersisterSetup& setup, const fabric::Capabilities& device);
// Throws UsageError if the region is too large for the method to address all of it.
void check_region(const PersisterSetup& setup, Bytes region_size);

}  // namespace perdura::methods
