// Where the files are that belong to a program: scripts of figures, papers' numbers, experiments.
//
// They are looked up in three places, the first one that has it wins: $PERDURA_HOME, the current
// folder, and what belongs to this program: share/perdura of the prefix that it was installed to,
// wherever that was moved, or the source tree that it was built from. A current folder that this
// user may not enter is none of them.
#pragma once

#include <filesystem>
#include <utility>
#include <vector>

namespace perdura::harness {

class DataFolders {
 public:
  explicit DataFolders(std::vector<std::filesystem::path> roots) : roots_(std::move(roots)) {}
  // The places described above.
  static DataFolders standard();
  // Where the files are that belong to the program of that path.
  static std::filesystem::path of_program(const std::filesystem::path& program);

  // The folder of gnuplot scripts: the first one that contains the scripts' common part.
  std::filesystem::path plots() const;

  // The first folder or file of that relative path that exists, else the path itself. Throws
  // PlatformError if nobody can say.
  std::filesystem::path first_existing(const std::filesystem::path& relative) const;

 protected:
  // Those that can be looked in.
  std::vector<std::filesystem::path> open_roots() const;

  std::vector<std::filesystem::path> roots_;
};

}  // namespace perdura::harness
