#include "harness/text/output_place.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "platform/base/path_kind.h"

namespace perdura::harness {
namespace {

namespace fs = std::filesystem;

std::string not_writable(const fs::path& path, int rights) {
  if (::faccessat(AT_FDCWD, path.c_str(), rights, AT_EACCESS) == 0) return "";
  return fmt::format("cannot be written: {}", std::strerror(errno));
}

fs::path folder_above(const fs::path& path) {
  const fs::path above = path.parent_path();
  return above.empty() ? "." : above;
}

}  // namespace

std::string problem_with_output_folder(const fs::path& folder) {
  const PathKind kind = kind_of(folder);
  if (kind == PathKind::folder) return not_writable(folder, W_OK | X_OK);
  if (kind != PathKind::nothing) return not_a_folder(folder);
  // "a/b/" is "a/b" and below that a nameless entry.
  fs::path above = folder_above(folder);
  while (kind_of(above) == PathKind::nothing && above != folder_above(above)) {
    above = folder_above(above);
  }
  const std::string problem =
      kind_of(above) == PathKind::folder ? not_writable(above, W_OK | X_OK) : not_a_folder(above);
  return problem.empty() ? "" : fmt::format("{}: {}", above.string(), problem);
}

std::string problem_with_output_file(const fs::path& file) {
  switch (kind_of(file)) {
    case PathKind::folder:
    case PathKind::unknown:
      return not_a_file(file);
    case PathKind::other:
      return not_writable(file, W_OK);
    case PathKind::file:
    case PathKind::nothing:
      break;
  }
  const fs::path above = folder_above(file);
  const std::string problem =
      kind_of(above) == PathKind::folder ? not_writable(above, W_OK | X_OK) : not_a_folder(above);
  return problem.empty() ? "" : fmt::format("{}: {}", above.string(), problem);
}

}  // namespace perdura::harness
