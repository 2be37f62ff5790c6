// System calls as values, drawn at random, and what they return: to carry out the same ones on two
// file systems.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "services/fs/posix/credentials.h"
#include "services/fs/tree.h"
#include "tests/services/fs/posix/process.h"

namespace perdura::fs::test {

struct Operation {
  enum class Kind : std::uint8_t {
    open,
    close,
    dup,
    read,
    pread,
    write,
    pwrite,
    lseek,
    seek_data,
    truncate,
    ftruncate,
    allocate,
    fsync,
    mkdir,
    rmdir,
    unlink,
    link,
    link_open,
    symlink,
    readlink,
    rename,
    mknod,
    chdir,
    stat,
    fstat,
    chmod,
    fchmod,
    chown,
    lchown,
    utimens,
    access,
    getxattr,
    setxattr,
    removexattr,
    listxattr,
    list,
    umask,
    count,
  };
  Kind kind{};
  std::size_t user = 0;  // of kUsers
  std::string path{};
  std::string other{};   // a second path, a target, or an attribute's name
  std::string data{};    // that is written
  std::size_t slot = 0;  // of an open file
  int flags = 0;
  std::uint32_t mode = 0;
  std::int64_t offset = 0;
  std::int64_t length = 0;
  bool follow = true;
  std::optional<std::uint32_t> uid{};
  std::optional<std::uint32_t> gid{};
  NewTime accessed{};
  NewTime modified{};
};
std::string text_of(const Operation& operation);

inline const std::vector<Credentials> kUsers{
    {.uid = 0, .gid = 0},
    {.uid = 1000, .gid = 1000, .groups = {2000}},
    {.uid = 1001, .gid = 1001, .groups = {1000, 2001}},
};
inline constexpr std::size_t kSlots = 5;

struct Outcome {
  int error = 0;  // errno
  std::uint64_t value = 0;
  std::string data{};
  bool operator==(const Outcome&) const = default;
};
std::string text_of(const Outcome& outcome);

// What is not the same everywhere, so that it is drawn or not.
struct Drawn {
  bool allocation = false;  // fallocate(); else the places of data and holes are asked for
  bool zero_range = false;
  bool others_remove_lists = false;     // access lists, but by user 0
  bool owner_of_nothing = true;         // chown() of neither owner nor group
  std::int64_t largest = 1 << 20;       // offset in a file
  std::uint32_t never_with_sticky = 0;  // permissions
};

// What there is: half of the paths go there, and most descriptors are open.
struct Known {
  std::vector<std::string> paths;
  std::vector<std::size_t> slots;
};

Operation draw(std::mt19937& random, const Drawn& drawn, const Known& known);

// What stat() says of a file.
struct Seen {
  std::uint64_t inode = 0;  // differs from one file system to another
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t links = 0;
  std::uint64_t device = 0;
  std::uint64_t size = 0;
  Timestamp modified{};
  Timestamp changed{};
};
// By path.
using Picture = std::map<std::string, Seen>;

// A file system to which system calls go.
class Side {
 public:
  virtual ~Side() = default;
  virtual Outcome apply(const Operation& operation) = 0;
  virtual Picture picture() = 0;
  // Whether the current directory has been removed.
  virtual bool is_lost() = 0;
  // The bytes of a regular file where it may have data, and zeros elsewhere if asked.
  virtual std::vector<Extent> data_of(const std::string& path) = 0;
  virtual std::string bytes_of(const std::string& path, Bytes offset, Bytes length) = 0;
};

}  // namespace perdura::fs::test
