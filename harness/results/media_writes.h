// What the DIMMs themselves say has been written to their media: the hardware's count beside the
// accounting in software (docs/accounting.md), for manifest.json.
//
// Only Intel's Optane modules count, and only their tool ipmctl (which needs root) tells. The count
// is of all modules of a host and of everybody who writes there. Where nobody counts there is no
// number but the reason.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "platform/base/units.h"

namespace perdura::harness {

// Over the lifetime of the modules, or a difference of two of these.
struct MediaWrites {
  std::optional<Bytes> bytes{};
  std::string not_available{};  // why there are none

  bool operator==(const MediaWrites&) const = default;
};

// Of this host. `command` prints what `ipmctl show -performance TotalMediaWrites` does.
MediaWrites media_writes(const std::string& command = "ipmctl show -performance TotalMediaWrites");
// The sum over the modules in such output.
MediaWrites media_writes_in(std::string_view output);
// Between two moments; a reason if one of them has none.
MediaWrites written_between(const MediaWrites& before, const MediaWrites& after);

}  // namespace perdura::harness
