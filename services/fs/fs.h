// A file system in persistent memory, below names and permissions: inodes, and the operations on
// them. This is the interface that a system implements. What a program sees of a file system,
// paths, open files, access checks and the rules of POSIX, is built on this interface once for all
// systems (services/fs/posix/); so is a mount (mount), for which the kernel does the same.
//
//   const auto files = system.mount(thread, "home", config);
//   const auto session = files->attach(thread);
//   const auto file = co_await session->create(kRootInode, "notes", {.mode = S_IFREG | 0644}, now);
//   co_await session->write(file->inode, 0, text, {now});
//   co_await session->sync(file->inode);
//
// A system may spread its file systems over servers (FsCluster). Then every node that mounts one is
// a client of it, and what follows holds for the sessions of all clients together.
//
// Every operation takes effect at one point in time between its call and its return, even if other
// operations use the same inodes, in this thread or in others. A failure does not undo an operation
// that has returned with success, and an operation that a failure interrupts takes effect entirely
// or not at all; for write() and append() each system says what holds (FsPromises). Errors are
// those of POSIX, as std::errc; an operation that fails changes nothing. There is one exception: if
// a server is gone, operations return not_connected, as all later ones of that session do, and the
// operation that was under way may have taken effect.
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

#include "methods/chooser.h"
#include "platform/base/parameter.h"
#include "platform/platform.h"
#include "services/event.h"
#include "services/metric.h"
#include "services/service.h"

namespace perdura::fs {

template <class T>
using Result = tl::expected<T, std::errc>;

// Identifies an inode as long as it exists; afterwards the number may be reused, with another
// generation.
enum class InodeNumber : std::uint64_t {};
inline constexpr InodeNumber kRootInode{1};  // the root directory

inline constexpr std::size_t kLongestName = 255;  // bytes
inline constexpr Bytes kLargestFile = std::numeric_limits<std::int64_t>::max();
inline constexpr std::size_t kLongestSymlink = 4095;
inline constexpr std::size_t kLongestAttributeName = 255;
inline constexpr Bytes kLargestAttribute = 64 * KiB;
inline constexpr Bytes kBlock = 4 * KiB;  // unit of allocation; Attributes::blocks counts 512 B
                                          // units

// Time since 1970, UTC.
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
  std::uint32_t links = 0;   // names; a directory has 2 plus one for each subdirectory
  std::uint64_t device = 0;  // number of a character or block device
  Bytes size = 0;            // for a symbolic link, the length of its target
  std::uint64_t blocks = 0;  // hold data and extended attributes; in units of 512 bytes
  Timestamp accessed{};
  Timestamp modified{};
  Timestamp changed{};
  Timestamp created{};
  // Set by a look-up of an inode that cannot be read. Such an inode can be held and its names can
  // be removed and, unless it is a directory, replaced and moved; all other operations on it return
  // io_error.
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
  std::uint32_t mode = 0;  // includes the type
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t device = 0;   // only of devices
  std::string_view target{};  // only of symbolic links
  std::span<const ExtendedAttribute> extended{};
};

// A set of changes that are made atomically.
struct AttributeChange {
  std::optional<std::uint32_t> permissions{};  // the lowest twelve bits of the mode
  std::optional<std::uint32_t> uid{};
  std::optional<std::uint32_t> gid{};
  std::optional<Timestamp> accessed{};
  std::optional<Timestamp> modified{};
  // If absent, `changed` stays as it is, which is meant for relaxed updates of `accessed` only.
  std::optional<Timestamp> changed{};
  // An extended attribute that is set in the same step; without a value it is removed if it exists.
  struct Extended {
    std::string_view name{};
    std::optional<std::span<const std::byte>> value{};
  };
  std::optional<Extended> extended{};
};

struct WriteOptions {
  Timestamp now{};
  // Clears set-user-ID in the same step, and set-group-ID if the group may execute the file.
  bool clear_set_id = false;
};

struct DirectoryEntry {
  std::string name;
  InodeNumber inode{};
  std::uint32_t type = 0;    // the type bits of the mode
  std::uint64_t cookie = 0;  // entries() continues after it; above 0 and below 2^62
};

enum class RenameMode : std::uint8_t {
  replace,   // removes the file that has the new name
  keep,      // fails with file_exists if the new name exists (RENAME_NOREPLACE)
  exchange,  // both names exist and change places (RENAME_EXCHANGE)
};

enum class AllocationMode : std::uint8_t {
  extend,     // space for the range, also after the end of the file
  keep_size,  // space for the range, also after the end of the file
  punch,      // frees the whole blocks of the range and zeros the rest; the size stays
  zero,       // zeroed space for the range, with the size growing
  zero_keep_size,
};

// `neither`, which is XATTR_CREATE with XATTR_REPLACE, never sets anything.
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
  std::uint64_t inodes = 0;       // total
  std::uint64_t free_inodes = 0;  // the others have a name or are held
};

// A range of a file, and where it is in persistent memory.
struct MappedExtent {
  Bytes in_file = 0;
  Bytes in_region = 0;
  Bytes length = 0;
};

// A file's data for direct access. As long as the object exists, the blocks of the extents neither
// move nor are freed, and writes change them in place.
class FileMapping {
 public:
  virtual ~FileMapping() = default;
  virtual pmem::Region& region() = 0;
  virtual std::span<const MappedExtent> extents() const = 0;  // ascending, without holes
};

// A thread's access to a mounted file system. Belongs to that thread. Several operations may be
// under way at once. Inode numbers must be those of inodes that have a name or are held.
//
// Names are names within a directory, 1 to 255 bytes without '/' and '\0', neither "." nor "..";
// others are invalid_argument, longer ones filename_too_long. If an operation needs a directory and
// the inode is none, it returns not_a_directory; if it must not be a directory, is_a_directory; if
// space is missing, no_space_on_device. Nothing else is checked, in particular no permissions.
// Which of several errors an operation returns, and everything else that it does, is defined by
// services/fs/model/.
class Session {
 public:
  virtual ~Session() = default;

  // --- names
  virtual Task<Result<Attributes>> look_up(InodeNumber directory, std::string_view name) = 0;
  // The parent of the root is the root. no_such_file_or_directory if the directory has been
  // removed.
  virtual Task<Result<InodeNumber>> parent(InodeNumber directory) = 0;
  // file_exists if the name exists. This and all operations below that change a directory set its
  // `modified` and `changed` to `now`. A directory that has been removed takes no names:
  // no_such_file_or_directory.
  virtual Task<Result<Attributes>> create(InodeNumber directory, std::string_view name,
                                          const NewInode& inode, Timestamp now) = 0;
  // Makes an inode without a name, held once; link() may give it a name, unless a failure comes
  // first.
  virtual Task<Result<Attributes>> create_unnamed(const NewInode& inode, Timestamp now) = 0;
  // Gives an inode another name, or its first. file_exists, operation_not_permitted for
  // directories, too_many_links. Sets the inode's `changed`, as unlink() and rename() do, also for
  // inodes whose names they remove.
  virtual Task<Result<Attributes>> link(InodeNumber inode, InodeNumber directory,
                                        std::string_view name, Timestamp now) = 0;
  // Not for directories. An inode without names exists as long as it is held.
  virtual Task<Result<void>> unlink(InodeNumber directory, std::string_view name,
                                    Timestamp now) = 0;
  // directory_not_empty unless it is empty.
  virtual Task<Result<void>> remove_directory(InodeNumber directory, std::string_view name,
                                              Timestamp now) = 0;
  // Does nothing if both are names of the same inode. invalid_argument if a directory would be
  // moved into itself or below. A directory replaces only an empty directory, any other file only a
  // file that is no directory.
  virtual Task<Result<void>> rename(InodeNumber from, std::string_view name, InodeNumber to,
                                    std::string_view new_name, RenameMode mode, Timestamp now) = 0;
  // Returns up to `most` entries in the order of their cookies, starting after `cookie`, or with
  // the first if it is 0; none at the end. A walk by cookies returns an entry that exists
  // throughout exactly once, even if others come and go. "." and ".." are not included.
  virtual Task<Result<std::vector<DirectoryEntry>>> entries(InodeNumber directory,
                                                            std::uint64_t cookie,
                                                            std::size_t most) = 0;
  // Returns the greatest cookie that an entry of the directory has had so far. Names that are
  // created later have greater ones, except those that replace an existing entry. So a walk that
  // stops at this cookie ends, even if it renames or creates an entry for each one that it meets.
  virtual Task<Result<std::uint64_t>> last_cookie(InodeNumber directory) = 0;
  virtual Task<Result<std::string>> read_link(InodeNumber inode) = 0;

  // --- attributes
  virtual Task<Result<Attributes>> attributes(InodeNumber inode) = 0;
  virtual Task<Result<Attributes>> change(InodeNumber inode, const AttributeChange& change) = 0;
  // `name` includes the namespace. no_message_available (ENODATA) if there is no such attribute,
  // file_exists by AttributeMode, argument_list_too_long (E2BIG) if the value is too large,
  // result_out_of_range (ERANGE) if the name is too long. Changes set `changed`.
  virtual Task<Result<std::vector<std::byte>>> extended(InodeNumber inode,
                                                        std::string_view name) = 0;
  virtual Task<Result<std::vector<std::string>>> extended_names(InodeNumber inode) = 0;
  virtual Task<Result<void>> set_extended(InodeNumber inode, std::string_view name,
                                          std::span<const std::byte> value, AttributeMode mode,
                                          Timestamp now) = 0;
  virtual Task<Result<void>> remove_extended(InodeNumber inode, std::string_view name,
                                             Timestamp now) = 0;

  // --- data of regular files; invalid_argument for others, directories included
  // Operations that change data set `modified` and `changed`; truncate() and allocate() do so even
  // if nothing changes, write() and append() without data do not.
  //
  // Returns the number of bytes read, which ends at the end of the file. Holes read as zeros.
  // `accessed` does not change.
  virtual Task<Result<Bytes>> read(InodeNumber inode, Bytes offset, std::span<std::byte> into) = 0;
  // Writes all of `data` or nothing; file_too_large beyond kLargestFile.
  virtual Task<Result<void>> write(InodeNumber inode, Bytes offset, std::span<const std::byte> data,
                                   const WriteOptions& options) = 0;
  // Writes at the end of the file as it is at that time, and returns the offset of the data.
  virtual Task<Result<Bytes>> append(InodeNumber inode, std::span<const std::byte> data,
                                     const WriteOptions& options) = 0;
  virtual Task<Result<void>> truncate(InodeNumber inode, Bytes size,
                                      const WriteOptions& options) = 0;
  virtual Task<Result<void>> allocate(InodeNumber inode, AllocationMode mode, Bytes offset,
                                      Bytes length, const WriteOptions& options) = 0;
  // Returns the first offset from `offset` on that is data, or is in a hole; the end of the file
  // counts as a hole. Blocks of kBlock are data if they have space, written or not.
  // no_such_device_or_address (ENXIO) if there is none, or if `offset` is not before the end.
  enum class Seek : std::uint8_t { data, hole };
  virtual Task<Result<Bytes>> seek(InodeNumber inode, Bytes offset, Seek what) = 0;
  // Makes everything that was done to the inode before durable (fsync).
  virtual Task<Result<void>> sync(InodeNumber inode) = 0;
  virtual Task<Result<void>> sync_all() = 0;
  // Maps whole blocks for direct access; holes in the range get blocks. operation_not_supported if
  // the system cannot map files.
  virtual Task<Result<std::unique_ptr<FileMapping>>> map([[maybe_unused]] InodeNumber inode,
                                                         [[maybe_unused]] Bytes offset,
                                                         [[maybe_unused]] Bytes length) {
    co_return tl::unexpected(std::errc::operation_not_supported);
  }

  // --- inodes in use
  // An inode without names exists as long as it is held: by open files, current directories, the
  // kernel's cache. Holds are not durable; a failure ends all of them. release() undoes that many
  // hold()s; releasing the last hold of an inode without names frees it. hold() may be called with
  // the number of an inode that existed earlier: it returns no_such_file_or_directory if the number
  // is free; if it has been reused, the generation shows it.
  virtual Task<Result<void>> hold(InodeNumber inode) = 0;
  virtual Task<> release(InodeNumber inode, std::uint64_t holds = 1) = 0;

  virtual Task<Result<Statistics>> statistics() = 0;
  // The values of FsSystem::session_metrics since the session was attached.
  virtual std::vector<double> metrics() const { return {}; }
};

// A mounted file system of a node; shared by the node's threads.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // At most FsConfig::threads sessions may exist at a time.
  virtual std::unique_ptr<Session> attach(Thread& thread) = 0;
  // Saves what makes the next mount quick. No session may exist, and nothing may be used
  // afterwards. A file system that is destroyed without it looks as after a failure of its process.
  virtual Task<> unmount() = 0;
  // How often each of FsSystem::events has happened since the mount, recovery included.
  virtual std::vector<std::uint64_t> events() const { return {}; }
  // The damage that mounting has found, as a phrase; empty if there is none.
  virtual std::string damage() const { return {}; }
  // Returns a contradiction in the file system, such as space that is neither free nor in use, as a
  // phrase; empty if there is none. No operation may be under way.
  virtual Task<std::string> audit() = 0;
};

// A server's part of a file system over a cluster. All other nodes are clients only; a store's node
// may be a client, too.
enum class FsRole : std::uint8_t { metadata, mirror, store };
std::string_view to_string(FsRole role);

struct FsServerNode {
  NodeId node{};
  FsRole role{};
  std::uint32_t group = 0;  // stores of the same group hold the same data
};

struct FsConfig {
  // Persistent memory that the file system gets; over a cluster, the data that each group of stores
  // holds.
  Bytes size = 16 * MiB;
  std::uint32_t threads = 1;  // sessions at the same time, those of all clients together
  // The root directory's attributes when the file system is made.
  std::uint32_t root_mode = 0755;
  std::uint32_t root_uid = 0;
  std::uint32_t root_gid = 0;
  Timestamp now{};  // time at which it is made or mounted
  // The caller will not change anything, so intact parts can be read although others are damaged.
  bool read_only = false;
  GivenParameters parameters{};
  std::vector<FsServerNode> servers{};  // none if the system has no FsCluster
  // The method that makes a page durable that a client writes to a store; must fit
  // FsCluster::update. Absent: as in the paper, whatever that guarantees.
  std::optional<methods::Method> data_method{};
  // The same for what the metadata server's mirror receives; must fit FsCluster::mirror_update.
  std::optional<methods::Method> mirror_method{};
};

// The promises of a system about writes, beyond those of Session.
struct FsPromises {
  bool durable_writes = true;  // durable when they return; else after sync()
  bool atomic_writes = true;   // atomic even if a failure interrupts them
};

// A defect of a file system, and whether it was repaired.
struct Damage {
  std::string where;  // "inode 17, log page 0x3f000"
  std::string what;   // a sentence
  bool repaired = false;
};

// The part of a file system that a server holds and serves; shared by the node's threads.
class FsServer {
 public:
  virtual ~FsServer() = default;
  // Serves clients and other servers, on each of FsCluster::workers threads, which listen at the
  // ports from 0 on. Does not return.
  virtual Task<> serve(Thread& thread) = 0;
  // How often each of FsSystem::events has happened here since it was opened, recovery included.
  // Clients and servers share that list.
  virtual std::vector<std::uint64_t> events() const { return {}; }
  // The values of FsCluster::server_metrics since it was opened.
  virtual std::vector<double> metrics() const { return {}; }
  // True if clients find the metadata here now, and so what they hold: at the metadata server, or at
  // its mirror if that has taken over.
  virtual bool has_metadata() const { return false; }
  // As those of FileSystem, for this part.
  virtual std::string damage() const { return {}; }
  virtual Task<std::string> audit() { co_return std::string(); }
};

// The servers of a system that spreads its file systems over a cluster.
struct FsCluster {
  // The servers of a small file system, for tests and for the histories in which failures are
  // tried: nodes 0, 1, ...
  std::span<const FsServerNode> small{};
  // The same with a mirror of the metadata server; none if the system has no mirrors. An exploration
  // takes these if the system's parameter `mirrors` is 1.
  std::span<const FsServerNode> small_with_mirror{};
  std::span<const services::Metric> server_metrics{};
  // The way in which a page gets from a client to a store: the input of the chooser
  // (FsConfig::data_method). Absent if the system persists in its own way only.
  std::optional<methods::UpdateNeeds> update{};
  // The same for what a mirror receives (FsConfig::mirror_method).
  std::optional<methods::UpdateNeeds> mirror_update{};

  // The number of threads that serve on the node.
  std::uint32_t (*workers)(const FsConfig& config, NodeId node);
  // Opens the part of the thread's node, after recovery. Throws UsageError if the node has none,
  // that is, if make() was not called there.
  Task<std::shared_ptr<FsServer>> (*open)(Thread& thread, std::string name, FsConfig config);
};

// An entry of the table of systems (systems/registry/registry.cc).
struct FsSystem {
  services::SystemInfo info;
  FsPromises promises{};
  // Parameters that make it small, for the histories in which failures are tried.
  std::span<const services::Setting> small{};
  std::span<const services::Event> events{};
  std::span<const services::Metric> session_metrics{};
  // If the system spreads its file systems over servers: what is different then is said below.
  const FsCluster* cluster = nullptr;

  // Throws UsageError if the configuration is impossible, as make() and mount() do.
  void (*check)(const FsConfig& config);
  // Makes an empty file system named `name` on the thread's node. Throws UsageError if the name
  // exists. With a cluster, makes the part of the thread's node, so each server calls it once.
  Task<> (*make)(Thread& thread, std::string name, FsConfig config);
  // Mounts it, after recovery if it was not unmounted. Throws UsageError if it does not exist, is
  // mounted, or is too damaged to be used; the message then names fs check. With a cluster, connects
  // a client on the thread's node to the servers, which must be serving: throws PlatformError if it
  // cannot. A node may mount it several times.
  Task<std::shared_ptr<FileSystem>> (*mount)(Thread& thread, std::string name, FsConfig config);
  // Lists the damage, trusting nothing that is stored; with `repair`, repairs what can be repaired
  // without loss. The file system must not be mounted. With a cluster, this and dump() work on the
  // part of the thread's node. Null if the system has neither.
  Task<std::vector<Damage>> (*inspect)(Thread& thread, std::string name, bool repair) = nullptr;
  // Everything that is stored, or one inode, as text for people.
  Task<std::string> (*dump)(Thread& thread, std::string name,
                            std::optional<InodeNumber> inode) = nullptr;
};

// The system's line in the table of services.
services::SystemInfo info_of(const FsSystem& system);

}  // namespace perdura::fs
