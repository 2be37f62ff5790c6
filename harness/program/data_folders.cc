#include "harness/program/data_folders.h"

#include <cstdlib>
#include <system_error>

namespace perdura::harness {

namespace fs = std::filesystem;

DataFolders DataFolders::standard() {
  std::vector<fs::path> roots;
  if (const char* home = std::getenv("PERDURA_HOME"); home != nullptr && *home != '\0') {
    roots.emplace_back(home);
  }
  roots.emplace_back("");
  std::error_code unknown;
  roots.push_back(of_program(fs::read_symlink("/proc/self/exe", unknown)));
  return DataFolders(std::move(roots));
}

fs::path DataFolders::of_program(const fs::path& program) {
  const fs::path installed = (program.parent_path() / PERDURA_DATA_FROM_PROGRAM).lexically_normal();
  std::error_code ignored;
  return fs::is_directory(installed / "experiments", ignored) ? installed : PERDURA_SOURCE_DIR;
}

fs::path DataFolders::plots() const {
  return first_existing(fs::path("plots") / "style.gp").parent_path();
}

fs::path DataFolders::first_existing(const fs::path& relative) const {
  std::error_code ignored;
  for (const fs::path& root : roots_) {
    if (fs::exists(root / relative, ignored)) return root / relative;
  }
  return relative;
}

}  // namespace perdura::harness
