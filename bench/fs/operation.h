// The operations of file-system workloads, and their names in results.
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
  read_whole,       // a file, from the beginning to the end
  write,            // a range
  write_whole,      // a file, from the beginning, in its full size
  append,           // a range at the end of the file, wherever that is
  fsync,            // the open file
  stat,             // a file, by name
  rename,           // within a directory, to a new name
  unlink,           // a file
  rmdir,            // an empty directory
  open_read_close,  // a file is opened, read whole and closed
  utimens,          // the times of the open file are set
};

constexpr std::string_view to_string(FileAction action) {
  constexpr std::string_view kNames[] = {
      "create", "mkdir", "open", "close",  "read",   "read-whole", "write",           "write-whole",
      "append", "fsync", "stat", "rename", "unlink", "rmdir",      "open-read-close", "utimens"};
  return kNames[static_cast<std::size_t>(action)];
}

inline harness::OperationKind kind_of(FileAction action) {
  return {static_cast<std::uint32_t>(action), std::string(to_string(action))};
}

// A lane has a slot for the file that its operations open, and slots for the files that it keeps open
// (FileWorkload::kept_files).
enum class OpenFile : std::uint8_t { current, kept };

// One operation. Everything that is needed to choose it has been done, so that only the file system
// is measured.
struct FileOperation {
  FileAction action{};
  // The path of the object from the workload's root; valid until the lane's next operation.
  std::string_view path{};
  std::string_view new_path{};  // only of rename
  OpenFile file = OpenFile::current;
  std::size_t kept = 0;  // index of the kept file
  Bytes offset = 0;
  Bytes length = 0;      // bytes to read or write; for create, those written afterwards
  bool closes = false;   // create: also closes the file, as part of the operation
  std::uint64_t id = 0;  // identifies the file to the workload
};

}  // namespace perdura::bench
