// The specification of the service: a whole file system as a value in DRAM. What the operations of
// Session do, and which errors they have, is what these functions do; everything here is decided,
// except what differs from system to system: inode numbers, generations, cookies, and how much
// space anything needs. Comparisons with a system go through trees (services/fs/tree.h).
//
// A copy shares what is not changed afterwards, so that many states can be kept.
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
  // Of the root directory.
  std::uint32_t root_mode = 0755;
  std::uint32_t root_uid = 0;
  std::uint32_t root_gid = 0;
  Timestamp now{};
  // Space for blocks of data; nothing else needs any.
  Bytes capacity = GiB;
  std::uint64_t inodes = 1 << 20;
  std::uint32_t most_links = std::numeric_limits<std::uint32_t>::max();
};

// Operations have the errors below in their order, and leave everything as it was with an error.
//  1. An inode that does not exist: no_such_file_or_directory (no user of a Session may ask).
//  2. One of the wrong type: not_a_directory; invalid_argument for data of what is not regular, and
//     for the target of what is not a symbolic link.
//  3. Names: invalid_argument, filename_too_long; then what is special to the operation.
//  4. A directory that has been removed and is held takes no names: no_such_file_or_directory.
//  5. What is found by the names, in the order in which the functions say it.
//  6. Space, inodes, links: no_space_on_device, too_many_links.
class Model {
 public:
  explicit Model(const ModelConfig& config = {});

  // --- names
  Result<Attributes> look_up(InodeNumber directory, std::string_view name) const;
  // Of a directory that has been removed: no_such_file_or_directory.
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

  // What a failure does: all holds end.
  void end_holds();
  // The number that the next inode gets, which must be free: with that which a system has chosen, a
  // history's numbers mean the same here.
  void choose_next_inode(InodeNumber number) { next_ = number; }
  bool exists(InodeNumber inode) const { return inodes_.contains(inode); }
  // What contradicts itself, as a phrase; empty if nothing does. A check of the model itself.
  std::string audit() const;

  // Whether no operation can tell them apart, but by cookies and generations.
  bool operator==(const Model& other) const;
  std::size_t hash() const;

 private:
  struct Entry {
    InodeNumber inode{};
    std::uint64_t cookie = 0;
  };
  struct Inode {
    Attributes attributes{};  // without `blocks`
    std::map<std::string, std::vector<std::byte>, std::less<>> extended;
    std::uint64_t holds = 0;
    Contents data;                                      // of a regular file
    std::string target;                                 // of a symbolic link
    std::map<std::string, Entry, std::less<>> entries;  // of a directory
    std::map<std::uint64_t, std::string> by_cookie;
    std::uint64_t next_cookie = 1;
    std::optional<InodeNumber> parent;

    bool operator==(const Inode& other) const;
    std::size_t hash() const;
  };
  using Found = Result<const Inode*>;

  Found find(InodeNumber inode) const;
  Found find_directory(InodeNumber inode) const;
  // A directory and a name that may be in it.
  Found find_place(InodeNumber directory, std::string_view name) const;
  Found find_regular(InodeNumber inode) const;
  // What a directory has under a name; null if nothing.
  const Inode* at(const Inode& directory, std::string_view name) const;
  bool lies_in(InodeNumber inode, InodeNumber directory) const;
  // To be changed; no longer shared with copies of the model.
  Inode& edit(InodeNumber inode);
  void free_if_unused(InodeNumber inode);

  std::errc why_not(const NewInode& inode) const;
  Inode& add_inode(const NewInode& inode, Timestamp now);
  void add_entry(InodeNumber directory, std::string_view name, InodeNumber inode, Timestamp now);
  // With it goes the directory's link of a directory; the inode's own links stay.
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
  InodeNumber lowest_free_ = kRootInode;  // or below
  std::optional<InodeNumber> next_;
};

}  // namespace perdura::fs

template <>
struct std::hash<perdura::fs::Model> {
  std::size_t operator()(const perdura::fs::Model& model) const { return model.hash(); }
};
