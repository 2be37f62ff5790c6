// The kernel's side of a mount: a session of libfuse, and for each thread a descriptor of /dev/fuse
// of its own (FUSE_DEV_IOC_CLONE), so that threads neither wait for each other in the kernel nor
// wake each other.
//
// Each request is read, handled and answered by one thread through its own descriptor.
#pragma once

#define FUSE_USE_VERSION 314

#include <fuse3/fuse_lowlevel.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mount/protocol.h"
#include "platform/pmem/mapped/mapping.h"
#include "services/fs/fs.h"

namespace perdura::mount {

struct ConnectionOptions {
  std::string directory;           // the mount point
  std::string source;              // the first column of /proc/mounts
  std::string type;                // "fuse.TYPE" is the third one
  std::string options;             // options of mount(8), separated by commas
  std::string given;               // the options that the user gave, for messages
  bool no_symbolic_links = false;  // programs cannot follow symbolic links there
};

class Connection {
 public:
  // Mounts. Throws UsageError if an option is unknown or impossible, PlatformError if the kernel
  // refuses to mount.
  Connection(const ConnectionOptions& options, const fuse_lowlevel_ops& operations);
  // Unmounts, unless that has happened already.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  fuse_session* session() const { return session_.get(); }

 private:
  struct Destroy {
    void operator()(fuse_session* session) const { fuse_session_destroy(session); }
  };
  std::unique_ptr<fuse_session, Destroy> session_;
};

// As long as the object exists, this thread answers through the descriptor of another thread's channel,
// through which the request has come.
class AnswersThrough {
 public:
  explicit AnswersThrough(int descriptor);
  ~AnswersThrough();
  AnswersThrough(const AnswersThrough&) = delete;
  AnswersThrough& operator=(const AnswersThrough&) = delete;

 private:
  int before_;
};

// A thread's descriptor. Belongs to that thread, which has one at a time.
class Channel {
 public:
  explicit Channel(const Connection& connection);  // throws PlatformError
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Waits for the next request and returns it; it is valid until the next call. Returns nothing if
  // the file system was unmounted or a signal arrived.
  std::optional<Message> receive();
  bool is_unmounted() const { return unmounted_; }
  // Returns true if receive() would return at once.
  bool has_request() const;
  // Calls the operation that handles the request.
  void process(const Message& message);
  // Answers a request that libfuse does not know. Returns false if the kernel no longer wants the
  // answer.
  bool answer(const fuse_in_header& request, int error, std::span<const std::byte> bytes);
  // Where its requests are answered, also by other threads (AnswersThrough).
  int descriptor() const { return device_.get(); }
  // Makes the kernel ask for the attributes of an inode again.
  void forget_attributes(fs::InodeNumber inode);

 private:
  fuse_session* session_;
  pmem::mapped::File device_;
  std::vector<std::byte> buffer_;
  std::size_t received_ = 0;
  bool unmounted_ = false;
};

}  // namespace perdura::mount
