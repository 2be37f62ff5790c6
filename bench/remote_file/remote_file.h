// A file in the memory of another node, as a point writes to it: what the client does for each
// write, and what the servers do for it ("Building Distributed Systems with Non-Volatile Main
// Memories and RDMA Networks", section 5.4.4).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "platform/platform.h"

namespace perdura::bench {

// The client's access to the file. Belongs to its thread.
class FileWriter {
 public:
  virtual ~FileWriter() = default;
  // The application's buffer for one write. What it holds is written.
  virtual std::span<std::byte> buffer() = 0;
  // Writes the buffer to the file at this offset. Returns why it failed; empty if it did not.
  virtual Task<std::string> write(Bytes offset) = 0;
  // Reads so much as the buffer has room for, into the buffer; for checks.
  virtual Task<std::string> read(Bytes offset) = 0;
  // Time of the writes so far before the device was given the WRITE; only of emulations.
  virtual Picoseconds indirection() const { return {}; }
  // Gives the file up; to be called before the writer is destroyed.
  virtual Task<> leave() { co_return; }
};

struct RemoteFileOptions {
  Bytes file_size = 0;
  Bytes write_size = 0;
  Bytes volume_size = 0;  // persistent memory of a file system
  // Time of a system call; only for models, since a real one takes the time that it takes.
  Picoseconds system_call{};
  NodeId client = 1;  // servers are the nodes below
};

class RemoteFile {
 public:
  virtual ~RemoteFile() = default;
  // The number of threads of a server's node, at the ports from 0 on.
  virtual std::uint32_t workers(NodeId) const { return 1; }
  // Makes the node's part; called by the node's first thread before serve().
  virtual Task<> open(Thread& thread) = 0;
  // Serves it on one of the node's threads. May return when there is nothing to do.
  virtual Task<> serve(Thread& thread) = 0;
  // Makes the file, filled with zeros, when all servers serve. Throws PlatformError or UsageError
  // if it cannot.
  virtual Task<std::unique_ptr<FileWriter>> connect(Thread& thread) = 0;
};

// The words of an error of the service fs.
inline std::string in_words(std::errc error) { return std::make_error_code(error).message(); }

}  // namespace perdura::bench
