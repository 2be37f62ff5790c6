// The guarantees of a completed operation if the server's power fails. Each level includes those
// before it. docs/guarantees.md defines them and says where they come from:
//
//   none            not even atomic: a mix of values, an invented value, an error, or a lost store
//   visible         others see the change; nothing is said about power failures
//   atomic          for each key, one of the states that it ever had is found, never a mix
//   ordered         for each key, at most the last change is lost: buffered durable linearizability
//                   of each key, with a buffer of one change
//   durable-writes  every acknowledged write is found; what a reader saw of a write that was not
//                   yet acknowledged may be lost
//   durable         the same, and what a reader saw is kept, too: durable linearizability
//
// A system declares its promise (KvSystem::level). The level that it really keeps is found by
// exploration (explore/crash.h), and only that is reported in results.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace perdura::services {

enum class GuaranteeLevel : std::uint8_t {
  none,
  visible,
  atomic,
  ordered,
  durable_writes,
  durable
};

inline constexpr std::array<std::string_view, 6> kGuaranteeWords{
    "none", "visible", "atomic", "ordered", "durable-writes", "durable"};

constexpr std::string_view to_string(GuaranteeLevel level) {
  return kGuaranteeWords[static_cast<std::size_t>(level)];
}

constexpr std::optional<GuaranteeLevel> guarantee_of_word(std::string_view word) {
  for (std::size_t i = 0; i < kGuaranteeWords.size(); ++i) {
    if (kGuaranteeWords[i] == word) return static_cast<GuaranteeLevel>(i);
  }
  return std::nullopt;
}

}  // namespace perdura::services
