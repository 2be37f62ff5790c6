// What the kernel's protocol of file systems in user space has (linux/fuse.h) and libfuse 3.14 does
// not know: it is read from the messages themselves.
#pragma once

#include <linux/fuse.h>

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>

namespace perdura::fs::fuse {

// A request as the kernel has sent it.
class Message {
 public:
  explicit Message(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // Valid messages begin with it.
  fuse_in_header header() const { return read<fuse_in_header>(0); }
  bool is(fuse_opcode opcode) const { return header().opcode == opcode; }
  // What follows the header of a request; must be there.
  template <class Arguments>
  Arguments arguments() const {
    return read<Arguments>(sizeof(fuse_in_header));
  }
  template <class Arguments>
  bool has_arguments() const {
    return bytes_.size() >= sizeof(fuse_in_header) + sizeof(Arguments);
  }

  // Set-user-ID and set-group-ID bits are to be cleared with this write or change of attributes
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

}  // namespace perdura::fs::fuse
