// Records what programs do with the files of a mount as a trace (trace.h). All threads of the mount
// call it; records are in the order in which they are added.
//
// A trace that cannot be written, because a disk is full, must not disturb the programs: recording
// ends, and finish() throws.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "services/fs/fs.h"
#include "services/fs/trace/trace_writer.h"

namespace perdura::fs {

class TraceRecorder {
 public:
  // As TraceWriter.
  explicit TraceRecorder(const std::string& path) : writer_(path) {}

  // --- names, which make the names of files in the trace
  void found(InodeNumber directory, std::string_view name, InodeNumber inode);
  void renamed(InodeNumber from, std::string_view name, InodeNumber to, std::string_view new_name,
               RenameMode mode);

  // A regular file, as it was before it is used. Others are ignored. An inode of another generation
  // is another file.
  void met(const Attributes& file);
  // Ignored if met() was not called for the inode.
  void add(TraceKind kind, InodeNumber inode, Bytes offset = 0, Bytes length = 0);
  // Throws PlatformError if not everything is in the trace.
  void finish();

 private:
  struct NameInDirectory {
    InodeNumber directory{};
    std::string name;
    auto operator<=>(const NameInDirectory&) const = default;
  };
  struct MetFile {
    std::uint32_t number = 0;
    std::uint64_t generation = 0;
  };
  std::string path_of(InodeNumber inode) const;
  template <class Work>
  void record(Work work);

  std::mutex mutex_;
  TraceWriter writer_;
  std::map<NameInDirectory, InodeNumber> inodes_;
  std::map<InodeNumber, NameInDirectory> names_;  // one of each inode's
  std::map<InodeNumber, MetFile> files_;
  std::string problem_;  // why recording has ended early
};

}  // namespace perdura::fs
