// A thread's access to a mounted file system of novad.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "services/fs/fs.h"
#include "systems/novad/client.h"
#include "systems/novad/file_access.h"
#include "systems/novad/link.h"

namespace perdura::systems::novad {

template <class T>
using Result = fs::Result<T>;
using fs::InodeNumber;
using fs::Timestamp;

class Session : public fs::Session {
 public:
  Session(std::shared_ptr<FileSystem> files, Thread& thread, Purpose purpose = Purpose::requests)
      : files_(std::move(files)),
        link_(thread, files_->server(), files_->mount(), purpose),
        access_(thread, files_->server()) {
    files_->session_begins();
  }
  ~Session() override { files_->session_ends(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

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

  Task<Result<Bytes>> read(InodeNumber inode, Bytes offset, std::span<std::byte> into) override;
  Task<Result<void>> write(InodeNumber inode, Bytes offset, std::span<const std::byte> data,
                           const fs::WriteOptions& options) override;
  Task<Result<Bytes>> append(InodeNumber inode, std::span<const std::byte> data,
                             const fs::WriteOptions& options) override;
  Task<Result<void>> truncate(InodeNumber inode, Bytes size,
                              const fs::WriteOptions& options) override;
  Task<Result<void>> allocate(InodeNumber inode, fs::AllocationMode mode, Bytes offset,
                              Bytes length, const fs::WriteOptions& options) override;
  Task<Result<Bytes>> seek(InodeNumber inode, Bytes offset, Seek what) override;
  Task<Result<void>> sync(InodeNumber inode) override;
  Task<Result<void>> sync_all() override;

  // Opens the file in the name of user 0, as a kernel does that checks the rights of its users
  // itself.
  Task<Result<void>> hold(InodeNumber inode) override;
  // The same in the name of anyone: for a program that leaves it to the server to check the rights.
  // `wanted`: a combination of fs::kMayRead and fs::kMayWrite. The mount's filekey gives the rights
  // with which anybody has opened the file, until the mount gives it up. permission_denied if the
  // file must not be opened so; then it is not held.
  Task<Result<void>> open(InodeNumber inode, fs::Credentials who, std::uint32_t wanted);
  Task<> release(InodeNumber inode, std::uint64_t holds) override;

  Task<Result<fs::Statistics>> statistics() override;
  std::vector<double> metrics() const override {
    return {static_cast<double>(link_.calls()), static_cast<double>(access_.reads()),
            static_cast<double>(access_.writes()), static_cast<double>(access_.refused()),
            static_cast<double>(access_.commits())};
  }

 protected:
  Link& connection() { return link_; }

 private:
  // Each executes a request, and returns its results, or its only result.
  Task<Result<std::vector<std::byte>>> call(Request request, InodeNumber inode, Encoder arguments,
                                            std::span<const std::byte> data = {}, Bytes most = 0);
  template <class T>
  Task<Result<T>> call_for(Request request, InodeNumber inode, Encoder arguments,
                           std::span<const std::byte> data = {});
  Task<Result<void>> call_without_value(Request request, InodeNumber inode, Encoder arguments,
                                        std::span<const std::byte> data = {});
  // The file if it is known to have all of these bytes, by a filekey; else one without a key.
  FileState file_with(InodeNumber inode, Bytes offset, Bytes length);
  Task<bool> write_directly(InodeNumber inode, Bytes offset, std::span<const std::byte> data,
                            const fs::WriteOptions& options);
  // Reads by a READ, without the server. Returns false if that cannot be done.
  Task<bool> read_directly(InodeNumber inode, Bytes offset, std::span<std::byte> into);
  // Syncs by a COMMIT, without the server's CPU. Returns false if that cannot be done.
  Task<bool> sync_directly(InodeNumber inode);
  // Returns the error of a write of more data than the volume has room for.
  Task<std::errc> why_too_much(InodeNumber inode, Bytes offset, Bytes length);

  std::shared_ptr<FileSystem> files_;
  Link link_;
  FileAccess access_;
};

}  // namespace perdura::systems::novad
