#include "harness/schema/advice.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace perdura::report {

std::string advice_on_damaged(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.parent_path();
  std::ifstream input(folder / "manifest.json");
  const auto manifest = nlohmann::json::parse(input, nullptr, false);
  // A process that was killed at the very end leaves the journal of a sweep that is complete.
  const bool complete = manifest.is_object() && manifest.value("status", "") == "complete";
  if (complete || !std::filesystem::exists(folder / "journal")) {
    return "run the experiment again in a new folder";
  }
  return fmt::format("'perdura run --continue {}' writes the file anew", folder.string());
}

}  // namespace perdura::report
