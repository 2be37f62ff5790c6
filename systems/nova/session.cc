#include "systems/nova/session.h"

#include "platform/runtime/executor.h"

namespace perdura::systems::nova {

namespace {

using fs::InodeNumber;
using fs::Timestamp;

std::uint64_t number_of(InodeNumber inode) { return static_cast<std::uint64_t>(inode); }

Result<void> without_value(const Result<Bytes>& result) {
  if (!result) return fail(result.error());
  return {};
}

class Mapping final : public fs::FileMapping {
 public:
  Mapping(Volume& volume, Operations& operations, InodeNumber inode,
          std::vector<fs::MappedExtent> extents)
      : volume_(volume), operations_(operations), inode_(inode), extents_(std::move(extents)) {}
  ~Mapping() override { operations_.unmap(number_of(inode_)); }
  pmem::Region& region() override { return volume_.region(); }
  std::span<const fs::MappedExtent> extents() const override { return extents_; }

 private:
  Volume& volume_;
  Operations& operations_;
  InodeNumber inode_;
  std::vector<fs::MappedExtent> extents_;
};

// An operation never suspends, so the operations of a session do not overlap and can share its
// working state.
class NovaSession final : public fs::Session {
 public:
  explicit NovaSession(std::shared_ptr<FileSystem> files)
      : files_(std::move(files)),
        number_(files_->volume().take_session()),
        operations_(files_->volume(), number_) {}
  ~NovaSession() override { files_->volume().give_back_session(number_); }

  Task<Result<fs::Attributes>> look_up(InodeNumber directory, std::string_view name) override {
    co_return operations_.look_up(number_of(directory), name);
  }
  Task<Result<InodeNumber>> parent(InodeNumber directory) override {
    const Result<std::uint64_t> found = operations_.parent(number_of(directory));
    if (!found) co_return fail(found.error());
    co_return InodeNumber{*found};
  }
  Task<Result<fs::Attributes>> create(InodeNumber directory, std::string_view name,
                                      const fs::NewInode& inode, Timestamp now) override {
    co_return operations_.create(number_of(directory), name, inode, now);
  }
  Task<Result<fs::Attributes>> create_unnamed(const fs::NewInode& inode, Timestamp now) override {
    co_return operations_.create_unnamed(inode, now);
  }
  Task<Result<fs::Attributes>> link(InodeNumber inode, InodeNumber directory, std::string_view name,
                                    Timestamp now) override {
    co_return operations_.link(number_of(inode), number_of(directory), name, now);
  }
  Task<Result<void>> unlink(InodeNumber directory, std::string_view name, Timestamp now) override {
    co_return operations_.remove(number_of(directory), name, false, now);
  }
  Task<Result<void>> remove_directory(InodeNumber directory, std::string_view name,
                                      Timestamp now) override {
    co_return operations_.remove(number_of(directory), name, true, now);
  }
  Task<Result<void>> rename(InodeNumber from, std::string_view name, InodeNumber to,
                            std::string_view new_name, fs::RenameMode mode,
                            Timestamp now) override {
    co_return operations_.rename(number_of(from), name, number_of(to), new_name, mode, now);
  }
  Task<Result<std::vector<fs::DirectoryEntry>>> entries(InodeNumber directory, std::uint64_t cookie,
                                                        std::size_t most) override {
    co_return operations_.entries(number_of(directory), cookie, most);
  }
  Task<Result<std::uint64_t>> last_cookie(InodeNumber directory) override {
    co_return operations_.last_cookie(number_of(directory));
  }
  Task<Result<std::string>> read_link(InodeNumber inode) override {
    co_return operations_.read_link(number_of(inode));
  }
  Task<Result<fs::Attributes>> attributes(InodeNumber inode) override {
    co_return operations_.attributes(number_of(inode));
  }
  Task<Result<fs::Attributes>> change(InodeNumber inode,
                                      const fs::AttributeChange& change) override {
    co_return operations_.change(number_of(inode), change);
  }
  Task<Result<std::vector<std::byte>>> extended(InodeNumber inode, std::string_view name) override {
    co_return operations_.extended(number_of(inode), name);
  }
  Task<Result<std::vector<std::string>>> extended_names(InodeNumber inode) override {
    co_return operations_.extended_names(number_of(inode));
  }
  Task<Result<void>> set_extended(InodeNumber inode, std::string_view name,
                                  std::span<const std::byte> value, fs::AttributeMode mode,
                                  Timestamp now) override {
    co_return operations_.set_extended(number_of(inode), name, value, mode, now);
  }
  Task<Result<void>> remove_extended(InodeNumber inode, std::string_view name,
                                     Timestamp now) override {
    co_return operations_.remove_extended(number_of(inode), name, now);
  }
  Task<Result<Bytes>> read(InodeNumber inode, Bytes offset, std::span<std::byte> into) override {
    co_return operations_.read(number_of(inode), offset, into);
  }
  Task<Result<void>> write(InodeNumber inode, Bytes offset, std::span<const std::byte> data,
                           const fs::WriteOptions& options) override {
    co_return without_value(operations_.write(number_of(inode), offset, data, options));
  }
  Task<Result<Bytes>> append(InodeNumber inode, std::span<const std::byte> data,
                             const fs::WriteOptions& options) override {
    co_return operations_.write(number_of(inode), std::nullopt, data, options);
  }
  Task<Result<void>> truncate(InodeNumber inode, Bytes size,
                              const fs::WriteOptions& options) override {
    co_return operations_.truncate(number_of(inode), size, options);
  }
  Task<Result<void>> allocate(InodeNumber inode, fs::AllocationMode mode, Bytes offset,
                              Bytes length, const fs::WriteOptions& options) override {
    co_return operations_.allocate(number_of(inode), mode, offset, length, options);
  }
  Task<Result<Bytes>> seek(InodeNumber inode, Bytes offset, Seek what) override {
    co_return operations_.seek(number_of(inode), offset, what == Seek::data);
  }
  // The effects of operations that have returned are durable already. Only stores by direct access
  // may still have to be flushed.
  Task<Result<void>> sync(InodeNumber inode) override {
    co_return operations_.sync(number_of(inode));
  }
  Task<Result<void>> sync_all() override { co_return Result<void>{}; }
  Task<Result<std::unique_ptr<fs::FileMapping>>> map(InodeNumber inode, Bytes offset,
                                                     Bytes length) override {
    auto extents = operations_.map(number_of(inode), offset, length);
    if (!extents) co_return fail(extents.error());
    co_return std::make_unique<Mapping>(files_->volume(), operations_, inode, std::move(*extents));
  }
  Task<Result<void>> hold(InodeNumber inode) override {
    co_return operations_.hold(number_of(inode));
  }
  Task<> release(InodeNumber inode, std::uint64_t holds) override {
    operations_.release(number_of(inode), holds);
    co_return;
  }
  Task<Result<fs::Statistics>> statistics() override {
    Volume& volume = files_->volume();
    co_return fs::Statistics{.capacity = volume.blocks().capacity() * kBlock,
                             .free = volume.blocks().available() * kBlock,
                             .inodes = volume.numbers().capacity(),
                             .free_inodes = volume.numbers().free_count()};
  }
  std::vector<double> metrics() const override {
    const Written& written = operations_.written();
    return {static_cast<double>(written.metadata), static_cast<double>(written.data),
            static_cast<double>(written.journal)};
  }

 private:
  std::shared_ptr<FileSystem> files_;
  std::uint32_t number_;
  Operations operations_;
};

}  // namespace

std::unique_ptr<fs::Session> FileSystem::attach(Thread&) {
  return std::make_unique<NovaSession>(shared_from_this());
}

Task<> FileSystem::unmount() {
  volume_->save();
  ownership_.reset();
  co_return;
}

std::vector<std::uint64_t> FileSystem::events() const {
  std::vector<std::uint64_t> counts(kHappened);
  for (std::size_t i = 0; i < kHappened; ++i) {
    counts[i] = volume_->count_of(static_cast<Happened>(i));
  }
  return counts;
}

Task<std::string> FileSystem::audit() { co_return volume_->audit(); }

}  // namespace perdura::systems::nova
