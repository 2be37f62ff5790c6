// What the workloads of file systems consist of, and how results name it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "harness/results/measurement.h"
#include "platform/base/units.h"

namespace perdura::bench {

enum class FileAction : std::uint8_t {
  create,           // a file, which is then open
  mkdir,            // a directory
  open,             // a file that exists
  close,            // the open file
  read,             // a range
  read_whole,       // from the beginning until there is no more
  write,            // a range
  write_whole,      // from the beginning, as many bytes as a file is to have
  append,           // at the end, wherever that is
  fsync,            // all that was written to the open file
  stat,             // of a name
  rename,           // within a directory, to a name that is not there
  unlink,           // of a file
  rmdir,            // of an empty directory
  open_read_close,  // a file is opened, read whole and closed
};

constexpr std::string_view to_string(FileAction action) {
  constexpr std::string_view kNames[] = {
      "create", "mkdir", "open", "close",  "read",   "read-whole", "write",          "write-whole",
      "append", "fsync", "stat", "rename", "unlink", "rmdir",      "open-read-close"};
  return kNames[static_cast<std::size_t>(action)];
}

inline harness::OperationKind kind_of(FileAction action) {
  return {static_cast<std::uint32_t>(action), std::string(to_string(action))};
}

// A lane has two places for open files: one for files that its operations open, and one for the
// file that is open all the time (FileWorkload::kept_file).
enum class OpenFile : std::uint8_t { current, kept };

// One operation. Whatever is needed to choose it has been done, so that only the file system is
// measured.
struct FileOperation {
  FileAction action{};
  // Of what has a name, from the root of the workload on; valid until the lane's next operation.
  std::string_view path{};
  std::string_view new_path{};  // of rename
  OpenFile file = OpenFile::current;
  Bytes offset = 0;
  Bytes length = 0;      // of read, write, append and write_whole; of create what is then written
  bool closes = false;   // create: the file is closed again, as part of the operation
  std::uint64_t id = 0;  // of the file, for the workload that has chosen it
};

}  // namespace perdura::bench
