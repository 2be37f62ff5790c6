#include "platform/host/numa.h"

#include <fmt/core.h>
#include <numaif.h>

#include <cerrno>
#include <cstring>

#include "platform/base/error.h"

namespace perdura {
namespace {

constexpr std::size_t kBits = 64;
using Mask = std::array<unsigned long, 16>;  // a bit for each NUMA node; Linux has 1,024 at most
constexpr unsigned kMostNodes = kBits * std::tuple_size_v<Mask>;
// The kernel ignores the last of the bits that it is given.
constexpr unsigned long kMaskSize = kMostNodes + 1;

Mask mask_of(unsigned numa_node) {
  Mask mask{};
  mask.at(numa_node / kBits) = 1UL << (numa_node % kBits);
  return mask;
}

void check(long result, unsigned numa_node) {
  if (result == 0) return;
  throw UsageError(
      fmt::format("memory cannot be bound to NUMA node {}: {}; see numactl --hardware, "
                  "or leave numa_node out",
                  numa_node, std::strerror(errno)));
}

std::optional<unsigned> binding(const std::byte* address) {
  int mode = MPOL_DEFAULT;
  Mask mask{};
  void* const at = const_cast<std::byte*>(address);
  if (get_mempolicy(&mode, mask.data(), kMostNodes, at, at == nullptr ? 0 : MPOL_F_ADDR) != 0) {
    return std::nullopt;
  }
  std::optional<unsigned> found;
  for (unsigned node = 0; node < kMostNodes && mode == MPOL_BIND; ++node) {
    if ((mask[node / kBits] >> (node % kBits) & 1U) == 0) continue;
    if (found) return std::nullopt;
    found = node;
  }
  return found;
}

}  // namespace

MemoryBinding::MemoryBinding(std::optional<unsigned> numa_node) {
  if (!numa_node) return;
  check(get_mempolicy(&mode_before_, nodes_before_.data(), kMostNodes, nullptr, 0), *numa_node);
  const Mask mask = mask_of(*numa_node);
  check(set_mempolicy(MPOL_BIND, mask.data(), kMaskSize), *numa_node);
  bound_ = true;
}

MemoryBinding::~MemoryBinding() {
  if (!bound_) return;
  const bool any = nodes_before_ != Mask{};
  set_mempolicy(mode_before_, any ? nodes_before_.data() : nullptr, any ? kMaskSize : 0);
}

void bind_memory(std::byte* base, Bytes size, std::optional<unsigned> numa_node) {
  if (!numa_node) return;
  const Mask mask = mask_of(*numa_node);
  check(mbind(base, size, MPOL_BIND, mask.data(), kMaskSize, 0), *numa_node);
}

std::optional<unsigned> memory_binding() { return binding(nullptr); }

std::optional<unsigned> memory_binding_at(const std::byte* address) { return binding(address); }

}  // namespace perdura
