// The specification of the service: a whole file system as a value in DRAM. These functions define
// what the operations of Session do and which errors they return. They decide everything, except
// what differs from system to system: inode numbers, generations, cookies, and the space that
// anything needs. Comparisons with a system go through trees (services/fs/tree.h).
//
// Copies share what does not change afterwards, so that many states can be kept.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "services/fs/fs.h"
#include "services/fs/model/contents.h"

namespace perdura::fs {

struct ModelConfig {
  // The root directory's attributes.
  std::uint32_t root_mode = 0755;
  std::uint32_t root_uid = 0;
  std::uint32_t root_gid = 0;
  Timestamp now{};
  // Space for data blocks; nothing else needs any.
  Bytes capacity = GiB;
  std::uint64_t inodes = 1 << 20;
  std::uint32_t most_links = std::numeric_limits<std::uint32_t>::max();
};

// Operations check for errors in this order, and change nothing if they return one:
//
//  1. An inode that does not exist: no_such_file_or_directory (a Session's user must not ask).
//  2. An inode of the wrong type: not_a_directory; invalid_argument for data of an inode that is no
//     regular file, and for the target of one that is no symbolic link.
//  3. Names: invalid_argument, filename_too_long; then what is special to the operation.
//  4. A removed directory that is held takes no names: no_such_file_or_directory.
//  5. The inodes that the names lead to, in the order of checks in the functions.
//  6. Space, inodes, links: no_space_on_device, too_many_links.
class Model {
 public:
  explicit Model(const ModelConfig& config = {});

  // --- names
  Result<Attributes> look_up(InodeNumber directory, std::string_view name) const;
  // no_such_file_or_directory if the directory has been removed.
  Result<InodeNumber> parent(InodeNumber directory) const;
  Result<Attributes> create(InodeNumber directory, std::string_view name, const NewInode& inode,
                            Timestamp now);
  Result<Attributes> create_unnamed(const NewInode& inode, Timestamp now);
  Result<Attributes> link(InodeNumber inode, InodeNumber directory, std::string_view name,
                          Timestamp now);
  Result<void> unlink(InodeNumber directory, std::string_view name, Timestamp now);
  Result<void> remove_directory(InodeNumber directory, std::string_view name, Timestamp now);
  Result<void> rename(InodeNumber from, std::string_view name, InodeNumber to,
                      std::string_view new_name, RenameMode mode, Timestamp now);
  Result<std::vector<DirectoryEntry>> entries(InodeNumber directory, std::uint64_t cookie,
                                              std::size_t most) const;
  Result<std::uint64_t> last_cookie(InodeNumber directory) const;
  Result<std::string> read_link(InodeNumber inode) const;

  // --- attributes
  Result<Attributes> attributes(InodeNumber inode) const;
  Result<Attributes> change(InodeNumber inode, const AttributeChange& change);
  Result<std::vector<std::byte>> extended(InodeNumber inode, std::string_view name) const;
  Result<std::vector<std::string>> extended_names(InodeNumber inode) const;
  Result<void> set_extended(InodeNumber inode, std::string_view name,
                            std::span<const std::byte> value, AttributeMode mode, Timestamp now);
  Result<void> remove_extended(InodeNumber inode, std::string_view name, Timestamp now);

  // --- data
  Result<Bytes> read(InodeNumber inode, Bytes offset, std::span<std::byte> into) const;
  Result<void> write(InodeNumber inode, Bytes offset, std::span<const std::byte> data,
                     const WriteOptions& options);
  Result<Bytes> append(InodeNumber inode, std::span<const std::byte> data,
                       const WriteOptions& options);
  Result<void> truncate(InodeNumber inode, Bytes size, const WriteOptions& options);
  Result<void> allocate(InodeNumber inode, AllocationMode mode, Bytes offset, Bytes length,
                        const WriteOptions& options);
  Result<Bytes> seek(InodeNumber inode, Bytes offset, Session::Seek what) const;
  Result<void> sync(InodeNumber inode) const;
  Result<void> sync_all() const { return {}; }

  // --- inodes in use
  Result<void> hold(InodeNumber inode);
  void release(InodeNumber inode, std::uint64_t holds = 1);

  Result<Statistics> statistics() const;

  // Has the effect of a failure: all holds end.
  void end_holds();
  // Sets the number of the next inode, which must be free. With the number that a system has
  // chosen, a history's numbers mean the same here.
  void choose_next_inode(InodeNumber number) { next_ = number; }
  bool exists(InodeNumber inode) const { return inodes_.contains(inode); }
  // Checks the model itself. Returns a contradiction as a phrase; empty if there is none.
  std::string audit() const;

  // True if no operation can tell the two apart, except by cookies and generations.
  bool operator==(const Model& other) const;
  std::size_t hash() const;

 private:
  struct NamedInode {
    InodeNumber inode{};
    std::uint64_t cookie = 0;
  };
  struct Inode {
    Attributes attributes{};  // without `blocks`
    std::map<std::string, std::vector<std::byte>, std::less<>> extended;
    std::uint64_t holds = 0;
    Contents data;                                           // only of a regular file
    std::string target;                                      // only of a symbolic link
    std::map<std::string, NamedInode, std::less<>> entries;  // only of a directory
    std::map<std::uint64_t, std::string> by_cookie;
    std::uint64_t next_cookie = 1;
    std::optional<InodeNumber> parent;

    bool operator==(const Inode& other) const;
    std::size_t hash() const;
  };
  using FoundInode = Result<const Inode*>;

  FoundInode find(InodeNumber inode) const;
  FoundInode find_directory(InodeNumber inode) const;
  // Finds a directory and checks a name that may be in it.
  FoundInode find_parent(InodeNumber directory, std::string_view name) const;
  FoundInode find_regular(InodeNumber inode) const;
  // The inode that a directory has under a name; null if none.
  const Inode* at(const Inode& directory, std::string_view name) const;
  bool lies_in(InodeNumber inode, InodeNumber directory) const;
  // The inode for changing, no longer shared with copies of the model.
  Inode& edit(InodeNumber inode);
  void free_if_unused(InodeNumber inode);

  std::errc why_not(const NewInode& inode) const;
  Inode& add_inode(const NewInode& inode, Timestamp now);
  void add_entry(InodeNumber directory, std::string_view name, InodeNumber inode, Timestamp now);
  // Also removes the link that a subdirectory gives its parent; the inode's own link count stays.
  void remove_entry(InodeNumber directory, std::string_view name, Timestamp now);
  void drop_name(InodeNumber inode, Timestamp now);
  bool has_space(std::uint64_t blocks) const;
  Result<void> store(InodeNumber inode, Bytes offset, std::span<const std::byte> data,
                     const WriteOptions& options);
  Attributes shown(const Inode& inode) const;

  ModelConfig config_;
  std::map<InodeNumber, std::shared_ptr<Inode>> inodes_;
  std::uint64_t used_blocks_ = 0;
  std::uint64_t generation_ = 0;
  InodeNumber lowest_free_ = kRootInode;  // or lower
  std::optional<InodeNumber> next_;
};

}  // namespace perdura::fs

template <>
struct std::hash<perdura::fs::Model> {
  std::size_t operator()(const perdura::fs::Model& model) const { return model.hash(); }
};
