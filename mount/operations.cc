#include "mount/operations.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

namespace perdura::mount {

namespace {

// The state of the request that this thread handles: libfuse passes nothing but its own handle.
struct Current {
  Handler* handler = nullptr;
  bool clears_set_id = false;
  Task<> work{};
};
thread_local Current current;

void begin(Task<> work) { current.work = std::move(work); }
Handler& handler() { return *current.handler; }

fs::InodeNumber inode_of(fuse_ino_t number) { return fs::InodeNumber{number}; }

std::span<const std::byte> bytes_of(const char* data, std::size_t size) {
  return std::as_bytes(std::span(data, size));
}

void init(void*, fuse_conn_info* connection) {
  constexpr unsigned kWanted = FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO | FUSE_CAP_PARALLEL_DIROPS |
                               FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO |
                               FUSE_CAP_POSIX_ACL | FUSE_CAP_DONT_MASK | FUSE_CAP_EXPORT_SUPPORT |
                               FUSE_CAP_CACHE_SYMLINKS;
  // Capabilities that are left out:
  // - FUSE_CAP_WRITEBACK_CACHE: a write is durable when it returns, so the kernel may not defer it.
  // - FUSE_CAP_AUTO_INVAL_DATA: all changes come through the kernel's cache, so it is never stale.
  // - FUSE_CAP_SPLICE_*: data is copied once, into or out of persistent memory, so a pipe would save
  //   nothing.
  // - FUSE_CAP_ATOMIC_O_TRUNC: the kernel truncates at open by a request of its own, and says if
  //   set-user-ID is to be cleared (protocol.h).
  // - Of a shared file system, targets of symbolic links, which others may replace, and attributes
  //   together with the names of a directory, since they would be asked for again.
  constexpr unsigned kNotShared =
      FUSE_CAP_CACHE_SYMLINKS | FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO;
  // - Of others, locks, which the kernel keeps by itself.
  constexpr unsigned kShared = FUSE_CAP_POSIX_LOCKS | FUSE_CAP_FLOCK_LOCKS;
  // - For a trace, attributes with the names of a directory: names are learned by look-ups.
  constexpr unsigned kNotTraced = FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO;
  const unsigned wanted = handler().is_shared()   ? (kWanted & ~kNotShared) | kShared
                          : handler().is_traced() ? kWanted & ~kNotTraced
                                                  : kWanted;
  connection->want = connection->capable & wanted;
}

void look_up(fuse_req_t request, fuse_ino_t directory, const char* name) {
  begin(handler().look_up(request, inode_of(directory), name));
}
void forget(fuse_req_t request, fuse_ino_t inode, std::uint64_t times) {
  begin(handler().forget(request, {{inode, times}}));
}
void forget_many(fuse_req_t request, std::size_t count, fuse_forget_data* inodes) {
  begin(handler().forget(request, {inodes, inodes + count}));
}
void get_attributes(fuse_req_t request, fuse_ino_t inode, fuse_file_info*) {
  begin(handler().attributes(request, inode_of(inode)));
}
void set_attributes(fuse_req_t request, fuse_ino_t inode, struct stat* wanted, int which,
                    fuse_file_info*) {
  begin(handler().set_attributes(request, inode_of(inode), *wanted, which, current.clears_set_id));
}
void read_link(fuse_req_t request, fuse_ino_t inode) {
  begin(handler().read_link(request, inode_of(inode)));
}
void make_node(fuse_req_t request, fuse_ino_t directory, const char* name, mode_t mode,
               dev_t device) {
  begin(handler().create(request, inode_of(directory), name, {.mode = mode, .device = device}));
}
void make_directory(fuse_req_t request, fuse_ino_t directory, const char* name, mode_t mode) {
  begin(handler().create(request, inode_of(directory), name, {.mode = S_IFDIR | (mode & 07777)}));
}
void make_symlink(fuse_req_t request, const char* target, fuse_ino_t directory, const char* name) {
  begin(handler().create(request, inode_of(directory), name,
                         {.mode = S_IFLNK | 0777, .target = target}));
}
void create(fuse_req_t request, fuse_ino_t directory, const char* name, mode_t mode,
            fuse_file_info* file) {
  begin(handler().create_open(request, inode_of(directory), name, mode, *file));
}
void link(fuse_req_t request, fuse_ino_t inode, fuse_ino_t directory, const char* name) {
  begin(handler().link(request, inode_of(inode), inode_of(directory), name));
}
void unlink(fuse_req_t request, fuse_ino_t directory, const char* name) {
  begin(handler().unlink(request, inode_of(directory), name));
}
void remove_directory(fuse_req_t request, fuse_ino_t directory, const char* name) {
  begin(handler().remove_directory(request, inode_of(directory), name));
}
void rename(fuse_req_t request, fuse_ino_t from, const char* name, fuse_ino_t to,
            const char* new_name, unsigned flags) {
  begin(handler().rename(request, inode_of(from), name, inode_of(to), new_name, flags));
}
void read_directory(fuse_req_t request, fuse_ino_t directory, std::size_t most, off_t offset,
                    fuse_file_info* file) {
  begin(handler().entries(request, inode_of(directory), most, static_cast<std::uint64_t>(offset),
                          false, file->fh));
}
void read_directory_plus(fuse_req_t request, fuse_ino_t directory, std::size_t most, off_t offset,
                         fuse_file_info* file) {
  begin(handler().entries(request, inode_of(directory), most, static_cast<std::uint64_t>(offset),
                          true, file->fh));
}
void get_extended(fuse_req_t request, fuse_ino_t inode, const char* name, std::size_t most) {
  begin(handler().extended(request, inode_of(inode), name, most));
}
void list_extended(fuse_req_t request, fuse_ino_t inode, std::size_t most) {
  begin(handler().extended_names(request, inode_of(inode), most));
}
void set_extended(fuse_req_t request, fuse_ino_t inode, const char* name, const char* value,
                  std::size_t size, int flags) {
  begin(handler().set_extended(request, inode_of(inode), name, bytes_of(value, size), flags));
}
void remove_extended(fuse_req_t request, fuse_ino_t inode, const char* name) {
  begin(handler().remove_extended(request, inode_of(inode), name));
}
void statistics(fuse_req_t request, fuse_ino_t) { begin(handler().statistics(request)); }

// If opening a file needs no request, closing it needs none either: the inode is held since its
// look-up.
void open(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file) {
  if (handler().wants_open()) {
    begin(handler().open(request, inode_of(inode), *file));
  } else {
    fuse_reply_err(request, ENOSYS);
  }
}
void open_directory(fuse_req_t request, fuse_ino_t directory, fuse_file_info* file) {
  begin(handler().open_directory(request, inode_of(directory), *file));
}
void close_directory(fuse_req_t request, fuse_ino_t, fuse_file_info* file) {
  handler().close_directory(request, *file);
}
void read(fuse_req_t request, fuse_ino_t inode, std::size_t size, off_t offset,
          fuse_file_info* file) {
  begin(handler().read(request, inode_of(inode), static_cast<Bytes>(offset), size, file->flags));
}
// The kernel writes back stores to mappings at their own offsets, whatever the file's flags.
void write(fuse_req_t request, fuse_ino_t inode, const char* data, std::size_t size, off_t offset,
           fuse_file_info* file) {
  begin(handler().write(request, inode_of(inode), static_cast<Bytes>(offset), bytes_of(data, size),
                        file->writepage ? 0 : file->flags, current.clears_set_id));
}
void allocate(fuse_req_t request, fuse_ino_t inode, int mode, off_t offset, off_t length,
              fuse_file_info*) {
  begin(handler().allocate(request, inode_of(inode), mode, static_cast<Bytes>(offset),
                           static_cast<Bytes>(length)));
}
void seek(fuse_req_t request, fuse_ino_t inode, off_t offset, int whence, fuse_file_info*) {
  begin(handler().seek(request, inode_of(inode), static_cast<Bytes>(offset), whence));
}
void sync(fuse_req_t request, fuse_ino_t inode, int, fuse_file_info*) {
  begin(handler().sync(request, inode_of(inode)));
}

fs::LockMode mode_of(int type) {
  return type == F_UNLCK   ? fs::LockMode::none
         : type == F_RDLCK ? fs::LockMode::shared
                           : fs::LockMode::exclusive;
}
fs::FileLock lock_of(const struct flock& wanted, const fuse_file_info& file) {
  const auto first = static_cast<Bytes>(wanted.l_start);
  return {
      .kind = fs::LockKind::ranges,
      .mode = mode_of(wanted.l_type),
      .first = first,
      .last = wanted.l_len == 0 ? fs::kLargestFile : first + static_cast<Bytes>(wanted.l_len) - 1,
      .owner = file.lock_owner,
      .process = static_cast<std::uint32_t>(wanted.l_pid)};
}

// The kernel sends requests for locks for shared file systems only.
void get_lock(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file, struct flock* wanted) {
  begin(handler().forbidding_lock(request, inode_of(inode), lock_of(*wanted, *file)));
}
void set_lock(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file, struct flock* wanted,
              int waits) {
  begin(handler().set_lock(request, inode_of(inode), lock_of(*wanted, *file), waits != 0));
}
void lock_file(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file, int how) {
  const fs::FileLock wanted{.kind = fs::LockKind::files,
                            .mode = (how & LOCK_UN) != 0   ? fs::LockMode::none
                                    : (how & LOCK_SH) != 0 ? fs::LockMode::shared
                                                           : fs::LockMode::exclusive,
                            .owner = file->lock_owner};
  begin(handler().set_lock(request, inode_of(inode), wanted, (how & LOCK_NB) == 0));
}
// A process has closed one of its descriptors: that ends its locks of ranges.
void flush(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file) {
  if (handler().is_shared()) {
    begin(handler().end_locks(request, inode_of(inode), fs::LockKind::ranges, file->lock_owner));
  } else {
    fuse_reply_err(request, ENOSYS);
  }
}
// The last descriptor of an open file has been closed.
void close_file(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file) {
  handler().note(fs::TraceKind::close, inode_of(inode));
  if (handler().is_shared() && file->flock_release != 0) {
    begin(handler().end_locks(request, inode_of(inode), fs::LockKind::files, file->lock_owner));
  } else {
    fuse_reply_err(request, 0);
  }
}

}  // namespace

// The kernel itself does what is missing here: copy_file_range.
const fuse_lowlevel_ops& operations() {
  static const fuse_lowlevel_ops all = [] {
    fuse_lowlevel_ops made{};
    made.init = init;
    made.lookup = look_up;
    made.forget = forget;
    made.forget_multi = forget_many;
    made.getattr = get_attributes;
    made.setattr = set_attributes;
    made.readlink = read_link;
    made.mknod = make_node;
    made.mkdir = make_directory;
    made.symlink = make_symlink;
    made.create = create;
    made.link = link;
    made.unlink = unlink;
    made.rmdir = remove_directory;
    made.rename = rename;
    made.open = open;
    made.opendir = open_directory;
    made.releasedir = close_directory;
    made.readdir = read_directory;
    made.readdirplus = read_directory_plus;
    made.getxattr = get_extended;
    made.listxattr = list_extended;
    made.setxattr = set_extended;
    made.removexattr = remove_extended;
    made.statfs = statistics;
    made.read = read;
    made.write = write;
    made.fallocate = allocate;
    made.lseek = seek;
    made.fsync = sync;
    made.fsyncdir = sync;
    made.getlk = get_lock;
    made.setlk = set_lock;
    made.flock = lock_file;
    made.flush = flush;
    made.release = close_file;
    return made;
  }();
  return all;
}

Task<> handle(Handler& with, Channel& channel, const Message& message) {
  if (message.is(FUSE_TMPFILE)) {
    return with.create_unnamed(message.header(), message.arguments<fuse_create_in>());
  }
  current = {.handler = &with, .clears_set_id = message.clears_set_id()};
  channel.process(message);
  return std::exchange(current.work, {});
}

}  // namespace perdura::mount
