#include <fmt/format.h>

#include <filesystem>

#include "bench/perdura/commands.h"
#include "platform/error.h"

namespace perdura::harness {

void check_result_folder(std::string_view command, const std::string& folder) {
  std::error_code ignored;
  if (std::filesystem::is_directory(folder, ignored)) return;
  const bool is_file = std::filesystem::exists(folder, ignored);
  throw UsageError(fmt::format("{} {}: {}; give one that 'perdura run' wrote", command, folder,
                               is_file ? "is a file, not a folder" : "there is no such folder"));
}

}  // namespace perdura::harness
