// A file that is nothing but registered persistent memory of a server, in one piece. Clients
// connect, learn its key, and WRITE.
#pragma once

#include <memory>
#include <vector>

#include "bench/remote_file/remote_file.h"

namespace perdura::bench {

// Where the file begins.
struct FilePlace {
  fabric::RemoteAddress begin;
  fabric::RemoteAddress at(Bytes offset) const { return {begin.key, begin.offset + offset}; }
};

struct FileConnection {
  std::unique_ptr<fabric::QueuePair> queue_pair;
  FilePlace file;
};

// Connects a thread to the file of a node. Throws PlatformError if it cannot.
Task<FileConnection> connect_to_file(Thread& thread, NodeId server = 0);

class VerbsFile : public RemoteFile {
 public:
  explicit VerbsFile(Bytes size) : size_(size) {}

  Task<> open(Thread& thread) override;
  Task<> serve(Thread& thread) override;

 private:
  Bytes size_;
  std::unique_ptr<pmem::Region> memory_;
  fabric::MemoryRegion registered_;
};

}  // namespace perdura::bench
