#include "harness/text/path_kind.h"

namespace perdura::harness {

namespace fs = std::filesystem;

std::string_view not_a_folder(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_regular_file(status)) return "is a file, not a folder";
  return fs::exists(status) ? "is neither a file nor a folder; give a folder"
                            : "there is no such folder";
}

std::string_view not_a_file(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) return "is a folder; give a file";
  return fs::exists(status) ? "is neither a file nor a folder; give a file"
                            : "there is no such file";
}

}  // namespace perdura::harness
