// The files of Filebench's personalities: a tree of directories with files of random sizes, some of
// which exist at first, and from which the threads take files in rotation.
//
// Made as Filebench makes it: files are in leaves of the tree. Widths of directories and depths of
// leaves are gamma distributed with shape 1.5, the widths around the mean that is given and the
// depths around log(files) / log(mean width); the root gets subtrees until there are enough files.
// Each file exists with the probability that is given, and its size is gamma distributed with
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
  std::string name{};  // of its root
  std::uint64_t files = 0;
  std::uint64_t mean_width = 1;  // of directories, more than 1
  Bytes mean_size = 0;
  std::uint64_t exist_percent = 100;  // when the workload begins
};

class FileSet {
 public:
  using Id = std::uint64_t;  // 0 to files() - 1

  FileSet(const FileSetShape& shape, std::uint64_t seed);

  std::uint64_t files() const { return files_.size(); }
  // Of all directories, each behind the one that it is in.
  const std::vector<std::string>& directories() const { return directories_; }
  std::string path(Id id) const;
  Bytes size(Id id) const { return files_[id].size; }
  bool existed_at_first(Id id) const { return files_[id].existed; }

  // --- for threads at the same time

  // Filebench has one rotor of existing files for all threads, whatever they take one for, and one
  // of files that do not exist. (Its attribute `rotatefd` gives each thread a rotor for opening;
  // none of the personalities sets it, and deletefile and statfile do not know it.)
  //
  // Each takes the next file in rotation, which the caller gives back by the function named.
  // Nothing if there is none.
  std::optional<Id> take_to_use();  // exists, and meanwhile none deletes it; used()
  // Exists; deleted(). If the next one is in use, it is passed over and nothing is to be deleted
  // this time: kInUse.
  std::optional<Id> take_to_delete();
  std::optional<Id> take_to_create();  // does not exist; created(), then used()
  static constexpr Id kInUse = ~Id{0};
  void used(Id id);
  void deleted(Id id);
  void created(Id id);

  bool exists(Id id) const;

 private:
  // Of a file: it is missing, somebody creates or deletes it, or so many use it.
  static constexpr std::uint32_t kMissing = 0;
  static constexpr std::uint32_t kBusy = 1;
  static constexpr std::uint32_t kExists = 2;  // plus how many use it

  struct File {
    std::uint32_t directory = 0;
    std::uint32_t number = 0;  // in its directory, from 1
    Bytes size = 0;
    bool existed = false;
  };

  void populate(std::uint32_t directory, double depth, workload::Random& random);
  std::uint32_t add_directory(const std::string& path);
  // The file from which on to look, counted from 0.
  using Rotor = std::atomic<std::uint64_t>;
  // Takes the first file from the rotor on for which `next` gives a state, perhaps the one it has.
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
