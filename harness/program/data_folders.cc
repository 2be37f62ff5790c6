#include "harness/program/data_folders.h"

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "platform/base/path_kind.h"

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
  return is_folder(installed / "experiments") ? installed : PERDURA_SOURCE_DIR;
}

fs::path DataFolders::plots() const {
  return first_existing(fs::path("plots") / "style.gp").parent_path();
}

fs::path DataFolders::first_existing(const fs::path& relative) const {
  for (const fs::path& root : open_roots()) {
    if (is_there(root / relative)) return root / relative;
  }
  return relative;
}

std::vector<fs::path> DataFolders::open_roots() const {
  std::vector<fs::path> open = roots_;
  std::erase_if(
      open, [](const fs::path& root) { return root.empty() && kind_of(".") == PathKind::unknown; });
  return open;
}

}  // namespace perdura::harness
