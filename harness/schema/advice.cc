#include "harness/schema/advice.h"

#include <fmt/format.h>

#include "harness/text/whole_file.h"
#include "platform/base/json.h"
#include "platform/base/path_kind.h"

namespace perdura::schema {

std::string advice_on_damaged(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.parent_path();
  const auto manifest =
      Json::parse_or_null(harness::read_whole(folder / "manifest.json").value_or(""));
  // A process that was killed at the very end leaves the journal of a sweep that is complete.
  const bool complete = manifest.is_object() && manifest.value("status", "") == "complete";
  if (complete || kind_of(folder / "journal") == PathKind::nothing) {
    return "run the experiment again in a new folder";
  }
  return fmt::format("'perdura run --continue {}' writes the file anew", folder.string());
}

}  // namespace perdura::schema
