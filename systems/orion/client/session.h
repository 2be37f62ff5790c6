// A thread's access to a mounted Orion file system. Operations that only look are executed on copies
// of inodes and logs; those that change one file commit entries to its log; the others are RPCs
// (section 4.2.1).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "services/fs/fs.h"
#include "services/fs/locks.h"
#include "systems/orion/client/file_system.h"
#include "systems/orion/client/inodes.h"
#include "systems/orion/client/own_pages.h"
#include "systems/orion/client/page_cache.h"
#include "systems/orion/client/stores.h"

namespace perdura::systems::orion {

template <class T>
using Result = fs::Result<T>;
using fs::InodeNumber;
using fs::Timestamp;

inline tl::unexpected<std::errc> fail(std::errc error) { return tl::unexpected(error); }

// Two names of this length and all else fit into a message; the MDS refuses what is longer than a
// name, or the name of an attribute, may be.
inline std::string_view shortened_name(std::string_view name) {
  static_assert(fs::kLongestName == fs::kLongestAttributeName);
  return name.substr(0, fs::kLongestName + 1);
}

// The inode of a request until call() checks that it is not lost.
inline std::uint64_t identity_of(InodeNumber inode) { return static_cast<std::uint64_t>(inode); }

class Session final : public fs::Session, public fs::LockSession {
 public:
  Session(std::shared_ptr<FileSystem> files, Thread& thread);

  // --- names.cc
  Task<Result<fs::Attributes>> look_up(InodeNumber directory, std::string_view name) override;
  Task<Result<InodeNumber>> parent(InodeNumber directory) override;
  Task<Result<fs::Attributes>> create(InodeNumber directory, std::string_view name,
                                      const fs::NewInode& inode, Timestamp now) override;
  Task<Result<fs::Attributes>> create_unnamed(const fs::NewInode& inode, Timestamp now) override;
  Task<Result<fs::Attributes>> link(InodeNumber inode, InodeNumber directory, std::string_view name,
                                    Timestamp now) override;
  Task<Result<void>> unlink(InodeNumber directory, std::string_view name, Timestamp now) override;
  Task<Result<void>> remove_directory(InodeNumber directory, std::string_view name,
                                      Timestamp now) override;
  Task<Result<void>> rename(InodeNumber from, std::string_view name, InodeNumber to,
                            std::string_view new_name, fs::RenameMode mode, Timestamp now) override;
  Task<Result<std::vector<fs::DirectoryEntry>>> entries(InodeNumber directory, std::uint64_t cookie,
                                                        std::size_t most) override;
  Task<Result<std::uint64_t>> last_cookie(InodeNumber directory) override;
  Task<Result<void>> hold(InodeNumber inode) override;
  Task<> release(InodeNumber inode, std::uint64_t holds) override;

  // --- locks.cc
  Task<Result<void>> lock(InodeNumber inode, const fs::FileLock& lock) override;
  Task<Result<std::optional<fs::FileLock>>> forbidding_lock(InodeNumber inode,
                                                            const fs::FileLock& lock) override;

  // --- attributes.cc
  Task<Result<std::string>> read_link(InodeNumber inode) override;
  Task<Result<fs::Attributes>> attributes(InodeNumber inode) override;
  Task<Result<fs::Attributes>> change(InodeNumber inode,
                                      const fs::AttributeChange& change) override;
  Task<Result<std::vector<std::byte>>> extended(InodeNumber inode, std::string_view name) override;
  Task<Result<std::vector<std::string>>> extended_names(InodeNumber inode) override;
  Task<Result<void>> set_extended(InodeNumber inode, std::string_view name,
                                  std::span<const std::byte> value, fs::AttributeMode mode,
                                  Timestamp now) override;
  Task<Result<void>> remove_extended(InodeNumber inode, std::string_view name,
                                     Timestamp now) override;
  Task<Result<fs::Statistics>> statistics() override;
  std::vector<double> metrics() const override;

  // --- data.cc
  Task<Result<Bytes>> read(InodeNumber inode, Bytes offset, std::span<std::byte> into) override;
  Task<Result<void>> write(InodeNumber inode, Bytes offset, std::span<const std::byte> data,
                           const fs::WriteOptions& options) override;
  Task<Result<Bytes>> append(InodeNumber inode, std::span<const std::byte> data,
                             const fs::WriteOptions& options) override;
  Task<Result<Bytes>> seek(InodeNumber inode, Bytes offset, Seek what) override;
  Task<Result<void>> sync(InodeNumber inode) override;
  Task<Result<void>> sync_all() override;

  // --- space.cc
  Task<Result<void>> truncate(InodeNumber inode, Bytes size,
                              const fs::WriteOptions& options) override;
  Task<Result<void>> allocate(InodeNumber inode, fs::AllocationMode mode, Bytes offset,
                              Bytes length, const fs::WriteOptions& options) override;

 private:
  class PagesUnderWay;
  class PagesToRead;
  class PagesToWrite;

  // The log entries of an operation, and the pages that they give to the file.
  struct Change {
    std::vector<std::byte> entries;
    std::vector<nova::Extent> taken;  // from own_
    std::vector<std::uint64_t> borrowed{};
    PagesSent sent{};

    template <class Entry>
    void add(const Entry& entry) {
      const std::size_t begin = entries.size();
      entries.resize(begin + kCacheLine);
      nova::EntryHeader header;
      std::memcpy(static_cast<void*>(&header), &entry, sizeof header);
      header.lines = 1;
      std::memcpy(entries.data() + begin, &entry, sizeof entry);
      std::memcpy(entries.data() + begin, &header, sizeof header);
    }
  };
  enum class By : std::uint8_t { commit, rpc };

  // Brings the copy up to date and checks that it is of this type; the errors are those of the
  // service's operations.
  Task<std::errc> use_directory(CachedInode& inode);
  Task<std::errc> use_regular(CachedInode& inode);

  // Sends a request and returns its answer, or the answer's error.
  Task<Result<Reply>> call(Outgoing request);
  Task<Result<void>> call_without_value(Outgoing request);
  Task<Result<fs::Attributes>> call_for_attributes(Outgoing request);

  // A change, with the number of the connection by which the inode was brought up to date.
  Change change_of(const CachedInode& inode) const;
  Task<bool> hold_again();
  Task<Result<void>> hold_first(InodeNumber inode);
  // give_back() and settle() say what became of the pages of a change. What was borrowed is given
  // back by end_borrow().
  void give_back(Change& change);
  void settle(Change& change);
  // Commits the entries. Returns resource_unavailable_try_again if somebody else's came first; then
  // the operation has to be executed again. Unless it succeeds, the pages are given back.
  Task<std::errc> commit(CachedInode& inode, Change& change, By by);
  Task<std::errc> commit_answered(CachedInode& inode, Change& change, By by);
  // Counts what the MDS has refused because others came first.
  static void note_refused(CachedInode& inode, std::errc error);

  // Takes adjacent pages, up to `most`, asking the MDS for a chunk if necessary.
  Task<Result<nova::Extent>> take_pages(Change& change, std::uint64_t most);
  // Borrows pages that are allocated to a file and unwritten. Returns resource_unavailable_try_again if
  // somebody else has them, or has written to them.
  Task<std::errc> borrow(CachedInode& inode, Change& change, std::uint64_t first,
                         std::uint64_t count);
  Task<> end_borrow();
  // Returns the pages that a write to these blocks of the file goes to, one for each.
  Task<Result<std::vector<std::uint64_t>>> pages_for(CachedInode& inode, Change& change,
                                                     std::uint64_t first, std::uint64_t last);
  Task<std::errc> read_pages(CachedInode& inode, Bytes offset, std::span<std::byte> into);
  bool copy_page(std::uint64_t gpa, Bytes from, std::span<std::byte> into);
  // The first bytes of a page.
  Task<std::errc> read_page(std::uint64_t gpa, std::span<std::byte> into);
  // The contents of a block of the file; zeros after the end of the file.
  Task<std::errc> read_block(CachedInode& inode, std::uint64_t index, std::span<std::byte> into);
  void note_written(std::uint64_t gpa, const PageCache::Pin& page);
  Task<std::errc> write_page(Change& change, std::uint64_t gpa, const PageCache::Pin& page);
  Task<std::errc> write_blocks(CachedInode& inode, Change& change,
                               std::span<const std::uint64_t> pages, Bytes offset,
                               std::span<const std::byte> data);
  Task<Result<Bytes>> write_at(InodeNumber inode, std::optional<Bytes> offset,
                               std::span<const std::byte> data, const fs::WriteOptions& options);
  Task<Result<Bytes>> try_write(CachedInode& inode, std::optional<Bytes> offset,
                                std::span<const std::byte> data, const fs::WriteOptions& options);
  Task<std::errc> try_truncate(CachedInode& inode, Bytes size, const fs::WriteOptions& options);
  Task<std::errc> try_allocate(CachedInode& inode, fs::AllocationMode mode, Bytes offset,
                               Bytes length, const fs::WriteOptions& options);
  Task<std::errc> zero_edge(CachedInode& inode, Change& change, std::uint64_t index, Bytes begin,
                            Bytes end, const nova::EntryHeader& header, Bytes size);
  Task<std::errc> fill_holes(CachedInode& inode, Change& change, std::uint64_t first,
                             std::uint64_t last, const nova::EntryHeader& header, Bytes size);
  Task<std::errc> replace_written(CachedInode& inode, Change& change, std::uint64_t first,
                                  std::uint64_t last, const nova::EntryHeader& header, Bytes size);
  Task<std::errc> fill(Change& change, std::span<const nova::Extent> blocks,
                       const nova::EntryHeader& header, Bytes size);
  bool is_speculative() const { return files_->parameters().speculates; }

  std::shared_ptr<FileSystem> files_;
  Thread& thread_;
  MdsLink link_;
  PageCache cache_;
  Stores stores_;
  Inodes inodes_;
  OwnPages own_;
  std::vector<std::uint64_t> unused_;  // pages that were borrowed and not written
  std::uint64_t own_connection_ = 0;   // the connection to whose session they were delegated
  std::uint64_t repetitions_ = 0;
};

// Shared by the files that implement Session.
nova::EntryHeader entry_header(nova::EntryType type, Timestamp now, std::uint32_t mode,
                               std::uint8_t flags = 0);
std::uint32_t mode_after(const nova::Inode& inode, const fs::WriteOptions& options);

}  // namespace perdura::systems::orion
