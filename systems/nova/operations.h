// The operations of fs::Session (services/fs/fs.h) for one session, each from its locks to its
// commit. They check for errors in the order of the specification (services/fs/model/model.h).
#pragma once

#include "systems/nova/volume.h"

namespace perdura::systems::nova {

template <class T>
using Result = fs::Result<T>;

inline std::span<const std::byte> bytes_of_text(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline tl::unexpected<std::errc> fail(std::errc error) { return tl::unexpected(error); }

class Operations {
 public:
  Operations(Volume& volume, std::uint32_t number) : volume_(volume) { context_.number = number; }

  const Written& written() const { return context_.written; }

  // --- names.cc
  Result<fs::Attributes> look_up(std::uint64_t directory, std::string_view name);
  Result<std::uint64_t> parent(std::uint64_t directory);
  Result<fs::Attributes> create(std::uint64_t directory, std::string_view name,
                                const fs::NewInode& inode, fs::Timestamp now);
  Result<fs::Attributes> create_unnamed(const fs::NewInode& inode, fs::Timestamp now);
  Result<fs::Attributes> link(std::uint64_t inode, std::uint64_t directory, std::string_view name,
                              fs::Timestamp now);
  Result<void> remove(std::uint64_t directory, std::string_view name, bool is_directory,
                      fs::Timestamp now);
  Result<std::vector<fs::DirectoryEntry>> entries(std::uint64_t directory, std::uint64_t cookie,
                                                  std::size_t most);
  Result<std::uint64_t> last_cookie(std::uint64_t directory);
  // --- rename.cc
  Result<void> rename(std::uint64_t from, std::string_view name, std::uint64_t to,
                      std::string_view new_name, fs::RenameMode mode, fs::Timestamp now);
  // --- attributes.cc
  Result<std::string> read_link(std::uint64_t inode);
  Result<fs::Attributes> attributes(std::uint64_t inode);
  Result<fs::Attributes> change(std::uint64_t inode, const fs::AttributeChange& change);
  Result<std::vector<std::byte>> extended(std::uint64_t inode, std::string_view name);
  Result<std::vector<std::string>> extended_names(std::uint64_t inode);
  Result<void> set_extended(std::uint64_t inode, std::string_view name,
                            std::span<const std::byte> value, fs::AttributeMode mode,
                            fs::Timestamp now);
  Result<void> remove_extended(std::uint64_t inode, std::string_view name, fs::Timestamp now);
  Result<void> hold(std::uint64_t inode);
  void release(std::uint64_t inode, std::uint64_t holds);
  // --- data.cc
  Result<Bytes> read(std::uint64_t inode, Bytes offset, std::span<std::byte> into);
  // Writes at the end of the file if there is no offset. Returns the offset of the data.
  Result<Bytes> write(std::uint64_t inode, std::optional<Bytes> offset,
                      std::span<const std::byte> data, const fs::WriteOptions& options);
  Result<Bytes> seek(std::uint64_t inode, Bytes offset, bool for_data);
  // --- space.cc
  Result<void> truncate(std::uint64_t inode, Bytes size, const fs::WriteOptions& options);
  Result<void> allocate(std::uint64_t inode, fs::AllocationMode mode, Bytes offset, Bytes length,
                        const fs::WriteOptions& options);
  // Gives each block of the range written blocks of its own, which stay in place until unmap().
  Result<std::vector<fs::MappedExtent>> map(std::uint64_t inode, Bytes offset, Bytes length);
  void unmap(std::uint64_t inode);
  Result<void> sync(std::uint64_t inode);

 private:
  static std::errc why_not_name(std::string_view name);
  static EntryHeader header(EntryType type, fs::Timestamp now, std::uint32_t mode = 0,
                            std::uint8_t flags = 0) {
    return {.type = type,
            .flags = flags,
            .seconds = now.seconds,
            .nanoseconds = now.nanoseconds,
            .mode = mode};
  }
  // The following add entries to the context.
  void add_name(Inode& directory, std::uint64_t cookie, std::string_view name, std::uint64_t inode,
                std::uint32_t mode, fs::Timestamp now);
  void remove_name(Inode& directory, const Name& name, fs::Timestamp now);
  void set_attributes(Inode& inode, const fs::Attributes& to);
  void set_links(Inode& inode, std::uint32_t links, fs::Timestamp now);
  std::errc add_extended(Inode& inode, std::string_view name, std::span<const std::byte> value,
                         fs::Timestamp now);
  void add_extended_removal(Inode& inode, std::string_view name, fs::Timestamp now);

  std::errc use_directory(Inode* directory);
  std::errc use_regular(Inode* inode);
  Result<fs::Attributes> try_create(std::uint64_t directory, std::string_view name,
                                    const fs::NewInode& inode, fs::Timestamp now);
  Result<fs::Attributes> try_create_unnamed(const fs::NewInode& inode, fs::Timestamp now);
  template <class Make>
  Result<fs::Attributes> until_not_busy(const Make& make);
  Result<Inode*> take_free_inode(Locked& locked);
  // Takes a free inode number, locks it, and writes and flushes its record. The commit will make
  // the inode exist; if it fails, give_up() must be called.
  Result<Inode*> prepare(Locked& locked, const fs::NewInode& inode, std::uint32_t links,
                         std::uint64_t parent, fs::Timestamp now);
  void give_up(Inode& inode);
  // Removes one name from a locked inode's link count, as part of the operation under way. Returns
  // true if the inode ends with it; then the caller calls discard() after the commit.
  bool lose_name(Inode& inode, fs::Timestamp now);

  std::errc own_blocks(Inode& inode, std::uint64_t first, std::uint64_t last);
  bool find_blocks(Inode& inode, std::uint64_t first, std::uint64_t last, Urgency urgency);
  static bool has_no_hole(const Inode& inode, std::uint64_t first, std::uint64_t last);
  void read_block(Inode& inode, std::uint64_t index, std::span<std::byte> into);
  Result<Bytes> write_mapped(Inode& inode, Bytes offset, std::span<const std::byte> data,
                             const fs::WriteOptions& options);
  void write_in_place(Inode& inode, Bytes offset, std::span<const std::byte> data);
  void zero_behind_end(Inode& inode, Bytes size);
  void move_last_block(Inode& inode, Bytes size, const fs::WriteOptions& options);
  std::uint32_t mode_after(const Inode& inode, const fs::WriteOptions& options) const;

  Volume& volume_;
  Context context_;
  std::uint64_t busy_ = 0;  // an inode that until_not_busy() waits for, or 0
};

}  // namespace perdura::systems::nova
