// The files of Filebench's personalities: a tree of directories with files of random sizes, some of
// which exist at first, and from which the threads take files in rotation.
//
// The tree is made as Filebench makes it: files are in leaf directories. Widths of directories and
// depths of leaves are gamma distributed with shape 1.5, the widths around the given mean and the
// depths around log(files) / log(mean width); the root gets subtrees until there are enough files.
// Each file exists at first with the given probability, and its size is gamma distributed with
// shape 1.5, too.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "platform/base/random.h"
#include "platform/base/units.h"

namespace perdura::bench {

struct FileSetShape {
  std::string name{};  // name of the root directory
  std::uint64_t files = 0;
  std::uint64_t mean_width = 1;  // mean number of entries of a directory, more than 1
  Bytes mean_size = 0;
  std::uint64_t exist_percent = 100;  // share of the files that exist when the workload starts
};

class FileSet {
 public:
  using Id = std::uint64_t;  // 0 to files() - 1

  FileSet(const FileSetShape& shape, std::uint64_t seed);

  std::uint64_t files() const { return files_.size(); }
  // The paths of all directories, each after its parent.
  const std::vector<std::string>& directories() const { return directories_; }
  std::string path(Id id) const;
  Bytes size(Id id) const { return files_[id].size; }
  bool existed_at_first(Id id) const { return files_[id].existed; }

  // --- may be called by several threads at once

  // Filebench has one rotor of existing files for all threads and all purposes, and one of files
  // that do not exist. (Its attribute `rotatefd` gives each thread a rotor for opening; none of the
  // personalities sets it, and deletefile and statfile do not know it.)
  //
  // Each of these functions takes the next suitable file in rotation, and returns nothing if there
  // is none. Its comment names the functions by which the caller gives the file back.
  std::optional<Id> take_to_use();  // exists, is not deleted meanwhile; given back by used()
  // Takes an existing file, given back by deleted(). If the next one is in use, passes over it
  // and returns kInUse: this time nothing is to be deleted.
  std::optional<Id> take_to_delete();
  std::optional<Id> take_to_create();  // does not exist; given back by created(), then used()
  static constexpr Id kInUse = ~Id{0};
  void used(Id id);
  void deleted(Id id);
  void created(Id id);

  bool exists(Id id) const;

 private:
  // States of a file: it is missing, it is being created or deleted, or it exists and has this many
  // users.
  static constexpr std::uint32_t kMissing = 0;
  static constexpr std::uint32_t kBusy = 1;
  static constexpr std::uint32_t kExists = 2;  // plus the number of users

  struct File {
    std::uint32_t directory = 0;
    std::uint32_t number = 0;  // its number in its directory, counted from 1
    Bytes size = 0;
    bool existed = false;
  };

  void populate(std::uint32_t directory, double depth, Random& random);
  std::uint32_t add_directory(const std::string& path);
  // The position from which the next search starts; reduced modulo the number of files.
  using Rotor = std::atomic<std::uint64_t>;
  // Takes the first file, searched from the rotor on, for whose state `next(state)` returns a
  // state, and gives it that state, which may be the old one.
  template <class Next>
  std::optional<Id> take(Rotor& rotor, Next next);

  FileSetShape shape_;
  double mean_depth_ = 0;
  std::vector<std::string> directories_;
  std::vector<File> files_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> states_;
  Rotor existing_rotor_{0};
  Rotor missing_rotor_{0};
};

}  // namespace perdura::bench
