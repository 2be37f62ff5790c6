#include <fmt/format.h>

#include <filesystem>

#include "bench/perdura/commands.h"
#include "harness/text/path_kind.h"
#include "platform/base/error.h"

namespace perdura::harness {

void check_result_folder(std::string_view command, const std::string& folder) {
  std::error_code ignored;
  if (std::filesystem::is_directory(folder, ignored)) return;
  throw UsageError(fmt::format("{} {}: {}; give one that 'perdura run' wrote", command, folder,
                               not_a_folder(folder)));
}

}  // namespace perdura::harness
