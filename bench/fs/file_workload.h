// A workload of a file system: the files that must exist before it starts, and the operations of
// its lanes in order. It knows nothing of the file system; bench/fs/fs_run.h performs the
// operations.
//
// A lane is what Filebench calls a thread and fio a job: a sequence of operations, one at a time. A
// thread of the application has as many lanes as its queue is deep.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/fs/operation.h"
#include "harness/run/point.h"

namespace perdura::bench {

// The operations of one lane. Belongs to a thread.
class FileLane {
 public:
  virtual ~FileLane() = default;
  // Returns the next operation, or nothing if no object is left for it; why() then says the reason.
  virtual std::optional<FileOperation> next() = 0;
  // Must be called after an operation has succeeded, before the next one.
  virtual void performed(const FileOperation&) {}
  virtual std::string why() const { return "nothing is left to be done"; }
};

struct NewFile {
  std::string path;
  Bytes size = 0;
};

// Shared by all lanes of a point.
class FileWorkload {
 public:
  virtual ~FileWorkload() = default;
  // The directories that exist at the start, by paths from the workload's root. Each comes after
  // its parent.
  virtual std::vector<std::string> directories() const = 0;
  // The files that exist at the start and that this lane has to make.
  virtual std::vector<NewFile> files(std::uint32_t lane) const = 0;
  // The files that the lane keeps open throughout.
  virtual std::vector<std::string> kept_files(std::uint32_t) const { return {}; }
  virtual std::unique_ptr<FileLane> lane(std::uint32_t lane) = 0;

  // The sizes that files must have after all lanes have ended, as far as they are known.
  virtual std::vector<NewFile> remains() const { return {}; }
};

// The point's settings must be complete (FsDriver::prepare).
std::unique_ptr<FileWorkload> create_file_workload(const harness::Point& point);

std::uint32_t lanes_of(const harness::Point& point);
// The number of operations with which a lane of mdtest makes, inspects and removes one tree.
std::uint64_t operations_of_tree(std::uint64_t depth, std::uint64_t branching, std::uint64_t width);

// The kinds of workload that create_file_workload() chooses from.
std::unique_ptr<FileWorkload> create_name_workload(const harness::Point& point);
std::unique_ptr<FileWorkload> create_data_workload(const harness::Point& point);
std::unique_ptr<FileWorkload> create_personality(const harness::Point& point);
std::unique_ptr<FileWorkload> create_tree_workload(const harness::Point& point);

}  // namespace perdura::bench
