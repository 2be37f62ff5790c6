// A file system in persistent memory, below names and permissions: inodes, and what may be done to
// them. This is what a system implements. What a program sees of it, paths, open files, the access
// checks and the rules of POSIX, stands on this interface once for all systems
// (services/fs/posix/); so does a mount (bench/perdura/mount), for which the kernel does the same.
//
//   const auto files = system.mount(thread, "home", config);
//   const auto session = files->attach(thread);
//   const auto file = co_await session->create(kRootInode, "notes", {.mode = S_IFREG | 0644}, now);
//   co_await session->write(file->inode, 0, text, {now});
//   co_await session->sync(file->inode);
//
// Every operation takes effect at one moment between its call and its return, also while others use
// the same inodes, in this thread or in others. What an operation has returned with success a
// failure does not undo, and an operation that a failure interrupts has taken effect entirely or
// not at all; of write() and append() a system says so for itself (FsPromises). Errors are those of
// POSIX, as std::errc, and leave everything as it was.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tl/expected.hpp>
#include <vector>

#include "platform/base/parameter.h"
#include "platform/platform.h"
#include "services/event.h"
#include "services/metric.h"
#include "services/service.h"

namespace perdura::fs {

template <class T>
using Result = tl::expected<T, std::errc>;

// Identifies an inode as long as it exists; a number is used again behind that, with another
// generation.
enum class InodeNumber : std::uint64_t {};
inline constexpr InodeNumber kRootInode{1};  // the root directory

inline constexpr std::size_t kLongestName = 255;  // bytes
inline constexpr Bytes kLargestFile = std::numeric_limits<std::int64_t>::max();
inline constexpr std::size_t kLongestSymlink = 4095;
inline constexpr std::size_t kLongestAttributeName = 255;
inline constexpr Bytes kLargestAttribute = 64 * KiB;
inline constexpr Bytes kBlock = 4 * KiB;  // of allocation, and of `blocks` below in units of 512 B

// Since 1970, UTC.
struct Timestamp {
  std::int64_t seconds = 0;
  std::uint32_t nanoseconds = 0;  // below 10^9
  auto operator<=>(const Timestamp&) const = default;
};

struct Attributes {
  InodeNumber inode{};
  std::uint64_t generation = 0;
  std::uint32_t mode = 0;  // type and permissions, as of stat(2): S_IFREG | 0644
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t links = 0;   // names; of a directory 2 and one for each directory in it
  std::uint64_t device = 0;  // of a character or block device
  Bytes size = 0;            // of a symbolic link the length of its target
  std::uint64_t blocks = 0;  // that hold its data and extended attributes, in units of 512 bytes
  Timestamp accessed{};
  Timestamp modified{};
  Timestamp changed{};
  Timestamp created{};
  // A look-up found an inode that cannot be read. Its names can be removed and, if it is no
  // directory, replaced and moved, and it can be held; all else is io_error.
  bool damaged = false;

  bool operator==(const Attributes&) const = default;
  bool is(mode_t type) const { return (mode & S_IFMT) == type; }
  bool is_directory() const { return is(S_IFDIR); }
  bool is_regular() const { return is(S_IFREG); }
  bool is_symlink() const { return is(S_IFLNK); }
};

// "user.comment" and its value. Access control lists are attributes, too, in the format of Linux:
// "system.posix_acl_access" and "system.posix_acl_default".
struct ExtendedAttribute {
  std::string name;
  std::vector<std::byte> value;
};

struct NewInode {
  std::uint32_t mode = 0;  // with the type
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t device = 0;   // of a device
  std::string_view target{};  // of a symbolic link
  std::span<const ExtendedAttribute> extended{};
};

// What is to be changed, all at once.
struct AttributeChange {
  std::optional<std::uint32_t> permissions{};  // the lowest twelve bits of the mode
  std::optional<std::uint32_t> uid{};
  std::optional<std::uint32_t> gid{};
  std::optional<Timestamp> accessed{};
  std::optional<Timestamp> modified{};
  // Absent: `changed` stays as it is, which only a relaxed update of `accessed` may want.
  std::optional<Timestamp> changed{};
  // An extended attribute that is set with it, or removed, if it is there, without a value.
  struct Extended {
    std::string_view name{};
    std::optional<std::span<const std::byte>> value{};
  };
  std::optional<Extended> extended{};
};

struct WriteOptions {
  Timestamp now{};
  // Clears set-user-ID, and set-group-ID of what a group may execute, in the same step.
  bool clear_set_id = false;
};

struct DirectoryEntry {
  std::string name;
  InodeNumber inode{};
  std::uint32_t type = 0;    // the type bits of the mode
  std::uint64_t cookie = 0;  // entries() goes on behind it; above 0 and below 2^62
};

enum class RenameMode : std::uint8_t {
  replace,   // what has the new name is removed
  keep,      // fails with file_exists if there is one (RENAME_NOREPLACE)
  exchange,  // both exist and change places (RENAME_EXCHANGE)
};

enum class AllocationMode : std::uint8_t {
  extend,     // space for the range, with the size growing to its end
  keep_size,  // space for the range, also behind the end of the file
  punch,      // frees the whole blocks of the range and zeros the rest; the size stays
  zero,       // zeros with space, with the size growing
  zero_keep_size,
};

// With `neither`, which is XATTR_CREATE and XATTR_REPLACE, nothing is ever set.
enum class AttributeMode : std::uint8_t { create_or_replace, create, replace, neither };
constexpr bool may_create(AttributeMode mode) {
  return mode == AttributeMode::create_or_replace || mode == AttributeMode::create;
}
constexpr bool may_replace(AttributeMode mode) {
  return mode == AttributeMode::create_or_replace || mode == AttributeMode::replace;
}

struct Statistics {
  Bytes capacity = 0;
  Bytes free = 0;
  std::uint64_t inodes = 0;       // that there can be
  std::uint64_t free_inodes = 0;  // of them; the others have a name or are held
};

// A range of a file where it lies in persistent memory.
struct MappedExtent {
  Bytes in_file = 0;
  Bytes in_region = 0;
  Bytes length = 0;
};

// A file's data for direct access. As long as it exists, the blocks of the extents neither move nor
// are freed, and writes change them in place.
class FileMapping {
 public:
  virtual ~FileMapping() = default;
  virtual pmem::Region& region() = 0;
  virtual std::span<const MappedExtent> extents() const = 0;  // ascending, without holes
};

// A mounted file system as a thread uses it. Belongs to that thread. Several operations may be
// under way at once. Inode numbers must be of inodes that have a name or that are held.
//
// Names are those within a directory, 1 to 255 bytes without '/' and '\0', neither "." nor "..";
// others are invalid_argument, longer ones filename_too_long. An inode that is to be a directory
// and is none is not_a_directory; a directory that must not be one is is_a_directory; what needs
// space that is not there is no_space_on_device. Nothing else is checked: no permissions. Which of
// several errors an operation has, and all else that it does, is defined by services/fs/model/.
class Session {
 public:
  virtual ~Session() = default;

  // --- names
  virtual Task<Result<Attributes>> look_up(InodeNumber directory, std::string_view name) = 0;
  // Of the root: the root. Of a directory that has been removed: no_such_file_or_directory.
  virtual Task<Result<InodeNumber>> parent(InodeNumber directory) = 0;
  // file_exists; the directory's `modified` and `changed` become `now`, as with all of these. A
  // directory that has been removed takes no names: no_such_file_or_directory.
  virtual Task<Result<Attributes>> create(InodeNumber directory, std::string_view name,
                                          const NewInode& inode, Timestamp now) = 0;
  // Without a name, and held once; link() may give it one, unless a failure comes first.
  virtual Task<Result<Attributes>> create_unnamed(const NewInode& inode, Timestamp now) = 0;
  // file_exists, operation_not_permitted for directories, too_many_links. Sets the inode's
  // `changed`, as unlink() and rename() do, of what they remove, too. An inode without names gets
  // one.
  virtual Task<Result<Attributes>> link(InodeNumber inode, InodeNumber directory,
                                        std::string_view name, Timestamp now) = 0;
  // Not of a directory. An inode without names exists as long as it is held.
  virtual Task<Result<void>> unlink(InodeNumber directory, std::string_view name,
                                    Timestamp now) = 0;
  // Of an empty directory; directory_not_empty.
  virtual Task<Result<void>> remove_directory(InodeNumber directory, std::string_view name,
                                              Timestamp now) = 0;
  // Names of the same inode: nothing happens. A directory into itself or below: invalid_argument.
  // A directory replaces only an empty directory, another file only another file.
  virtual Task<Result<void>> rename(InodeNumber from, std::string_view name, InodeNumber to,
                                    std::string_view new_name, RenameMode mode, Timestamp now) = 0;
  // Up to `most` entries, in the order of their cookies, from behind `cookie` on, or from the first
  // if it is 0; none is the end. An entry that is there all the time, while others come and go, is
  // returned once by a walk with the cookies. "." and ".." are not among them.
  virtual Task<Result<std::vector<DirectoryEntry>>> entries(InodeNumber directory,
                                                            std::uint64_t cookie,
                                                            std::size_t most) = 0;
  // The greatest cookie that an entry of the directory has had so far. Whatever gets a name later,
  // but in the place of an entry that is there, has a greater one. So a walk that ends there comes
  // to an end, although who walks renames or creates an entry for each that he meets.
  virtual Task<Result<std::uint64_t>> last_cookie(InodeNumber directory) = 0;
  virtual Task<Result<std::string>> read_link(InodeNumber inode) = 0;

  // --- attributes
  virtual Task<Result<Attributes>> attributes(InodeNumber inode) = 0;
  virtual Task<Result<Attributes>> change(InodeNumber inode, const AttributeChange& change) = 0;
  // `name` with its namespace. no_message_available (ENODATA) if there is none, file_exists by
  // AttributeMode, argument_list_too_long (E2BIG) for a value that is too large,
  // result_out_of_range (ERANGE) for a name that is too long; sets `changed`.
  virtual Task<Result<std::vector<std::byte>>> extended(InodeNumber inode,
                                                        std::string_view name) = 0;
  virtual Task<Result<std::vector<std::string>>> extended_names(InodeNumber inode) = 0;
  virtual Task<Result<void>> set_extended(InodeNumber inode, std::string_view name,
                                          std::span<const std::byte> value, AttributeMode mode,
                                          Timestamp now) = 0;
  virtual Task<Result<void>> remove_extended(InodeNumber inode, std::string_view name,
                                             Timestamp now) = 0;

  // --- data of regular files; of others, directories too, invalid_argument
  // What changes data sets `modified` and `changed`, truncate() and allocate() also if they change
  // nothing; write() and append() of nothing set neither.
  // Returns how much there was up to the end of the file. Holes are zeros. `accessed` stays.
  virtual Task<Result<Bytes>> read(InodeNumber inode, Bytes offset, std::span<std::byte> into) = 0;
  // All of it, or nothing; file_too_large beyond kLargestFile.
  virtual Task<Result<void>> write(InodeNumber inode, Bytes offset, std::span<const std::byte> data,
                                   const WriteOptions& options) = 0;
  // At the end of the file at that moment; returns where that was.
  virtual Task<Result<Bytes>> append(InodeNumber inode, std::span<const std::byte> data,
                                     const WriteOptions& options) = 0;
  virtual Task<Result<void>> truncate(InodeNumber inode, Bytes size,
                                      const WriteOptions& options) = 0;
  virtual Task<Result<void>> allocate(InodeNumber inode, AllocationMode mode, Bytes offset,
                                      Bytes length, const WriteOptions& options) = 0;
  // The first byte from `offset` on that is data, or in a hole; the end of the file counts as a
  // hole. Blocks of kBlock are data if they have space, written or not. no_such_device_or_address
  // (ENXIO) if there is none, and from the end on.
  enum class Seek : std::uint8_t { data, hole };
  virtual Task<Result<Bytes>> seek(InodeNumber inode, Bytes offset, Seek what) = 0;
  // Everything that was done to it before is durable (fsync).
  virtual Task<Result<void>> sync(InodeNumber inode) = 0;
  virtual Task<Result<void>> sync_all() = 0;
  // For direct access of whole blocks; holes in it get blocks. operation_not_supported if the
  // system cannot.
  virtual Task<Result<std::unique_ptr<FileMapping>>> map([[maybe_unused]] InodeNumber inode,
                                                         [[maybe_unused]] Bytes offset,
                                                         [[maybe_unused]] Bytes length) {
    co_return tl::unexpected(std::errc::operation_not_supported);
  }

  // --- inodes in use
  // As long as it is held, an inode without names exists: by open files, current directories, the
  // kernel's cache. Not durable; a failure ends all holds. release() undoes so many hold()s, and of
  // the last of an inode without names frees it. hold() may be called with the number of an inode
  // that existed before: no_such_file_or_directory if it is free, and if it is used again, its
  // generation says so.
  virtual Task<Result<void>> hold(InodeNumber inode) = 0;
  virtual Task<> release(InodeNumber inode, std::uint64_t holds = 1) = 0;

  virtual Task<Result<Statistics>> statistics() = 0;
  // FsSystem::session_metrics, since it was attached.
  virtual std::vector<double> metrics() const { return {}; }
};

// A mounted file system of a node; shared by the node's threads.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // Up to FsConfig::threads at a time.
  virtual std::unique_ptr<Session> attach(Thread& thread) = 0;
  // What makes the next mount quick. Without sessions; nothing may be used afterwards. A file
  // system that is destroyed without it looks as after a failure of its process.
  virtual Task<> unmount() = 0;
  // How often each of FsSystem::events has happened since it was mounted, recovery included.
  virtual std::vector<std::uint64_t> events() const { return {}; }
  // The damage that mounting has found, as a phrase; empty if there is none.
  virtual std::string damage() const { return {}; }
  // What contradicts itself, such as space that is neither free nor in use, as a phrase; empty if
  // nothing does. While no operation is under way.
  virtual Task<std::string> audit() = 0;
};

struct FsConfig {
  Bytes size = 16 * MiB;      // of the persistent memory that it has
  std::uint32_t threads = 1;  // with sessions at the same time
  // Of the root directory, when the file system is made.
  std::uint32_t root_mode = 0755;
  std::uint32_t root_uid = 0;
  std::uint32_t root_gid = 0;
  Timestamp now{};  // when it is made or mounted
  // Nothing is going to be changed, so what is whole can be read although other things are damaged.
  bool read_only = false;
  GivenParameters parameters{};
};

// What a system promises of writes beyond Session.
struct FsPromises {
  bool durable_writes = true;  // when they return; else when sync() does
  bool atomic_writes = true;   // under failures
};

// What is wrong with a file system, and what was done about it.
struct Damage {
  std::string where;  // "inode 17, log page 0x3f000"
  std::string what;   // a sentence
  bool repaired = false;
};

// An entry of the table of systems (systems/registry/registry.cc).
struct FsSystem {
  services::SystemInfo info;
  FsPromises promises{};
  // Parameters that make it small, for histories in which failures are tried.
  std::span<const services::Setting> small{};
  std::span<const services::Event> events{};
  std::span<const services::Metric> session_metrics{};

  // Throws UsageError if the configuration is impossible, as make() and mount() do.
  void (*check)(const FsConfig& config);
  // Makes an empty file system named `name` on the thread's node. Throws UsageError if the name
  // exists.
  Task<> (*make)(Thread& thread, std::string name, FsConfig config);
  // Mounts it, after recovery if it was not unmounted. Throws UsageError if there is none, if it is
  // mounted, or if it is damaged so that it cannot be used; the message then names fs check.
  Task<std::shared_ptr<FileSystem>> (*mount)(Thread& thread, std::string name, FsConfig config);
  // Finds and names what is damaged, without believing anything that is stored; repairs what can be
  // repaired without loss if asked to. Not while it is mounted.
  Task<std::vector<Damage>> (*inspect)(Thread& thread, std::string name, bool repair);
  // All that is stored, readable by a person; of one inode, or of everything.
  Task<std::string> (*dump)(Thread& thread, std::string name, std::optional<InodeNumber> inode);
};

}  // namespace perdura::fs
