// A workload of a file system: what there must be before it begins, and the operations of its lanes
// in order. It knows nothing of the file system; who performs the operations is bench/fs/fs_run.h.
//
// A lane is what Filebench calls a thread and fio a job: one operation behind the other. A thread
// of the application has as many lanes as its queue is deep.
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
  // The next operation; nothing if there is nothing left that it could be done to, which why() then
  // says.
  virtual std::optional<FileOperation> next() = 0;
  // To be called when it has been performed with success, before the next one.
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
  // What there is when it begins, by paths from its root on. A directory stands behind the one
  // that it is in.
  virtual std::vector<std::string> directories() const = 0;
  // What the lane has to make of the files.
  virtual std::vector<NewFile> files(std::uint32_t lane) const = 0;
  // The file that the lane has open all the time; empty: none.
  virtual std::string kept_file(std::uint32_t) const { return ""; }
  virtual std::unique_ptr<FileLane> lane(std::uint32_t lane) = 0;

  // When all lanes have ended: how large each file must be, of those of which that is known.
  virtual std::vector<NewFile> remains() const { return {}; }
};

// Of a point whose settings are complete (FsDriver::prepare).
std::unique_ptr<FileWorkload> create_file_workload(const harness::Point& point);

std::uint32_t lanes_of(const harness::Point& point);
// Of mdtest: the operations of a lane by which each tree is made, looked at and removed once.
std::uint64_t operations_of_tree(std::uint64_t depth, std::uint64_t branching, std::uint64_t width);

// For create_file_workload().
std::unique_ptr<FileWorkload> create_name_workload(const harness::Point& point);
std::unique_ptr<FileWorkload> create_data_workload(const harness::Point& point);
std::unique_ptr<FileWorkload> create_personality(const harness::Point& point);
std::unique_ptr<FileWorkload> create_tree_workload(const harness::Point& point);

}  // namespace perdura::bench
