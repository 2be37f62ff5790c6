#include "harness/program/data_folders.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "platform/base/error.h"
#include "platform/base/path_kind.h"

namespace perdura::harness {

namespace fs = std::filesystem;

namespace {

// null if it is not set
const char* home_of_user() {
  const char* const home = std::getenv("PERDURA_HOME");
  return home == nullptr || *home == '\0' ? nullptr : home;
}

// Files of the same names would be found elsewhere, and the user would not notice that they are not
// the own ones.
void check_home() {
  const char* const home = home_of_user();
  if (home == nullptr || kind_of(home) == PathKind::folder) return;
  throw UsageError(fmt::format("PERDURA_HOME={}: {}; correct the variable, or unset it", home,
                               not_a_folder(home)));
}

}  // namespace

DataFolders DataFolders::standard() {
  std::vector<fs::path> roots;
  if (const char* const home = home_of_user()) roots.emplace_back(home);
  roots.emplace_back("");
  std::error_code unknown;
  roots.push_back(of_program(fs::read_symlink("/proc/self/exe", unknown)));
  return DataFolders(std::move(roots));
}

fs::path DataFolders::of_program(const fs::path& program) {
  const fs::path installed = (program.parent_path() / PERDURA_DATA_FROM_PROGRAM).lexically_normal();
  return is_folder(installed / "experiments") ? installed : PERDURA_SOURCE_DIR;
}

std::string document_path(std::string_view name) {
  std::error_code unknown;
  const fs::path program = fs::read_symlink("/proc/self/exe", unknown);
  const fs::path page =
      (program.parent_path() / PERDURA_DOCUMENTS_FROM_PROGRAM / name).lexically_normal();
  return kind_of(page) == PathKind::file ? page.string() : fmt::format("docs/{}", name);
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
  check_home();
  std::vector<fs::path> open = roots_;
  std::erase_if(
      open, [](const fs::path& root) { return root.empty() && kind_of(".") == PathKind::unknown; });
  return open;
}

}  // namespace perdura::harness
