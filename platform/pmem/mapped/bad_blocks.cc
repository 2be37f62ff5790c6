#include <fmt/format.h>

#include "platform/base/error.h"
#include "platform/pmem/mapped/persistent_source.h"

namespace perdura::pmem::mapped {

void refuse_bad_blocks(const BadBlocks& found, const std::string& path, bool device) {
  if (found.extents.empty()) return;
  constexpr std::size_t kShown = 3;
  Bytes bytes = 0;
  std::string places;
  for (std::size_t i = 0; i < found.extents.size(); ++i) {
    bytes += found.extents[i].length;
    if (i >= kShown) continue;
    places += fmt::format("{}{}", i == 0 ? "" : ", ", found.extents[i].offset);
  }
  if (found.extents.size() > kShown) places += ", ...";
  const std::string way_out =
      device ? fmt::format(
                   "clear them with ndctl clear-errors NAMESPACE (see ndctl list "
                   "--media-errors), which loses these bytes, or name another device")
             : fmt::format(
                   "save what can be read, remove the file and clear them with ndctl "
                   "clear-errors, or choose another directory");
  throw UsageError(fmt::format(
      "{} has {} bad {} ({} bytes, at offset {}) whose contents are lost and which end a process "
      "that reads them; {}",
      path, found.extents.size(), found.extents.size() == 1 ? "block" : "blocks", bytes, places,
      way_out));
}

}  // namespace perdura::pmem::mapped
