#include "platform/child_process.h"

#include <fmt/format.h>

#include "platform/base/error.h"

namespace perdura {

ChildProcesses& child_processes_of(Node& node) { return dynamic_cast<ChildProcesses&>(node); }

void check_parts(const std::vector<MemoryPart>& parts, Bytes size, std::string_view region) {
  constexpr Bytes kPage = 4096;
  Bytes from = 0;
  for (const MemoryPart& part : parts) {
    const bool whole = part.offset % kPage == 0 && (part.length % kPage == 0 || part.end() == size);
    if (!whole) {
      throw UsageError(
          fmt::format("region '{}': a process is given whole pages of {} bytes, not {} bytes at {}",
                      region, kPage, part.length, part.offset));
    }
    const bool inside = part.offset >= from && part.length > 0 && part.offset <= size &&
                        part.length <= size - part.offset;
    if (!inside) {
      throw UsageError(
          fmt::format("region '{}' of {} bytes has no part of {} bytes at {}, or two "
                      "parts overlap",
                      region, size, part.length, part.offset));
    }
    from = part.end();
  }
}

}  // namespace perdura
