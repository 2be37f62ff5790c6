// The DIMMs' own count of the bytes written to their media, for manifest.json: a hardware counter
// to compare with the accounting in software (docs/accounting.md).
//
// Only Intel's Optane modules have this counter, and only their tool ipmctl (which needs root)
// reads it. It includes the writes of all processes to all modules of a host. Without a counter
// there is a reason instead of a number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "platform/base/units.h"

namespace perdura::harness {

// Bytes over the lifetime of the modules, or a difference of two such counts.
struct MediaWrites {
  std::optional<Bytes> bytes{};
  std::string not_available{};  // the reason if there is no count

  bool operator==(const MediaWrites&) const = default;
};

// The count of this host. `command` must print what `ipmctl show -performance TotalMediaWrites`
// does.
MediaWrites media_writes(const std::string& command = "ipmctl show -performance TotalMediaWrites");
// The sum over the modules in such output.
MediaWrites media_writes_in(std::string_view output);
// The bytes written between two counts; a reason if either count is missing.
MediaWrites written_between(const MediaWrites& before, const MediaWrites& after);

}  // namespace perdura::harness
