// Locates the files that belong to a program: scripts of figures, papers' numbers, experiments.
//
// They are looked up in three places, of which the first that has the file wins: $PERDURA_HOME; the
// current folder, unless this user may not enter it; and the program's own data, which is
// share/perdura of its installation prefix, wherever that was moved, or the source tree that it was
// built from.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace perdura::harness {

class DataFolders {
 public:
  explicit DataFolders(std::vector<std::filesystem::path> roots) : roots_(std::move(roots)) {}
  // The places described above.
  static DataFolders standard();
  // The folder of the files that belong to the program at that path.
  static std::filesystem::path of_program(const std::filesystem::path& program);

  // The folder of gnuplot scripts: the first one that contains the scripts' common part.
  std::filesystem::path plots() const;

  // The first existing folder or file with that relative path, or else the path itself. Throws
  // PlatformError if existence cannot be determined.
  std::filesystem::path first_existing(const std::filesystem::path& relative) const;

 protected:
  // The roots that this user may look into.
  std::vector<std::filesystem::path> open_roots() const;

  std::vector<std::filesystem::path> roots_;
};

// A page of documentation, as a message names it: its path where this program is installed, and
// "docs/results.md" in the source tree.
std::string document_path(std::string_view name);

}  // namespace perdura::harness
