// What a completed operation means when the server's power fails, in four words. Each includes
// those before it:
//
//   visible   others see it; what a power failure leaves of it is not said
//   atomic    of each key one of the states that it ever had is found, never a mix
//   ordered   of each key at most the last change is lost
//   durable   nothing that was acknowledged is lost
//
// What a system promises is declared (KvSystem::level); what it keeps is explored
// (bench/crash/crash.h, whose "none" is less than atomic).
#pragma once

#include <cstdint>
#include <string_view>

namespace perdura::systems {

enum class GuaranteeLevel : std::uint8_t { visible, atomic, ordered, durable };

constexpr std::string_view to_string(GuaranteeLevel level) {
  constexpr std::string_view kNames[] = {"visible", "atomic", "ordered", "durable"};
  return kNames[static_cast<int>(level)];
}

}  // namespace perdura::systems
