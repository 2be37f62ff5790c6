// Mojim ("Building Distributed Systems with Non-Volatile Main Memories and RDMA Networks", chapter
// 3): each of its modes is a system of its own, as are the schemes with which it is compared.
// docs/systems/mojim.md describes what the paper leaves open.
#pragma once

#include <span>

#include "services/memory/memory.h"

namespace perdura::systems {

std::span<const services::MemorySystem> mojim_modes();

}  // namespace perdura::systems
