// The parts of the kernel's protocol of file systems in user space (linux/fuse.h) that libfuse 3.14
// does not know. They are read from the messages themselves.
#pragma once

#include <linux/fuse.h>

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>

namespace perdura::mount {

// A request in the form that the kernel sends.
class Message {
 public:
  explicit Message(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // Every valid message has a header.
  fuse_in_header header() const { return read<fuse_in_header>(0); }
  bool is(fuse_opcode opcode) const { return header().opcode == opcode; }
  // The arguments that follow the header; has_arguments() must be true.
  template <class Arguments>
  Arguments arguments() const {
    return read<Arguments>(sizeof(fuse_in_header));
  }
  template <class Arguments>
  bool has_arguments() const {
    return bytes_.size() >= sizeof(fuse_in_header) + sizeof(Arguments);
  }

  // Returns true if this write or change of attributes must clear set-user-ID and set-group-ID
  // (FUSE_HANDLE_KILLPRIV_V2).
  bool clears_set_id() const {
    if (is(FUSE_WRITE) && has_arguments<fuse_write_in>()) {
      return (arguments<fuse_write_in>().write_flags & FUSE_WRITE_KILL_SUIDGID) != 0;
    }
    if (is(FUSE_SETATTR) && has_arguments<fuse_setattr_in>()) {
      return (arguments<fuse_setattr_in>().valid & FATTR_KILL_SUIDGID) != 0;
    }
    return false;
  }

 private:
  template <class Part>
  Part read(std::size_t at) const {
    Part part{};
    std::memcpy(&part, bytes_.data() + at, sizeof part);
    return part;
  }

  std::span<const std::byte> bytes_;
};

}  // namespace perdura::mount
