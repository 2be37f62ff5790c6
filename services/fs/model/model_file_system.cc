#include "services/fs/model/model_file_system.h"

namespace perdura::fs {

std::unique_ptr<Session> ModelFileSystem::attach(Thread&) { return attach(); }

std::unique_ptr<Session> ModelFileSystem::attach() { return std::make_unique<ModelSession>(*this); }

Task<std::string> ModelFileSystem::audit() { co_return model().audit(); }

Model ModelFileSystem::model() const {
  const std::lock_guard lock(mutex_);
  return model_;
}

Tree tree_of(Model model, const TreeOptions& options) {
  ModelFileSystem files(std::move(model));
  ModelSession session(files);
  return run_at_once(read_tree(session, options));
}

Task<Result<Attributes>> ModelSession::look_up(InodeNumber directory, std::string_view name) {
  co_return call(&Model::look_up, directory, name);
}

Task<Result<InodeNumber>> ModelSession::parent(InodeNumber directory) {
  co_return call(&Model::parent, directory);
}

Task<Result<Attributes>> ModelSession::create(InodeNumber directory, std::string_view name,
                                              const NewInode& inode, Timestamp now) {
  co_return call(&Model::create, directory, name, inode, now);
}

Task<Result<Attributes>> ModelSession::create_unnamed(const NewInode& inode, Timestamp now) {
  co_return call(&Model::create_unnamed, inode, now);
}

Task<Result<Attributes>> ModelSession::link(InodeNumber inode, InodeNumber directory,
                                            std::string_view name, Timestamp now) {
  co_return call(&Model::link, inode, directory, name, now);
}

Task<Result<void>> ModelSession::unlink(InodeNumber directory, std::string_view name,
                                        Timestamp now) {
  co_return call(&Model::unlink, directory, name, now);
}

Task<Result<void>> ModelSession::remove_directory(InodeNumber directory, std::string_view name,
                                                  Timestamp now) {
  co_return call(&Model::remove_directory, directory, name, now);
}

Task<Result<void>> ModelSession::rename(InodeNumber from, std::string_view name, InodeNumber to,
                                        std::string_view new_name, RenameMode mode, Timestamp now) {
  co_return call(&Model::rename, from, name, to, new_name, mode, now);
}

Task<Result<std::vector<DirectoryEntry>>> ModelSession::entries(InodeNumber directory,
                                                                std::uint64_t cookie,
                                                                std::size_t most) {
  co_return call(&Model::entries, directory, cookie, most);
}

Task<Result<std::uint64_t>> ModelSession::last_cookie(InodeNumber directory) {
  co_return call(&Model::last_cookie, directory);
}

Task<Result<std::string>> ModelSession::read_link(InodeNumber inode) {
  co_return call(&Model::read_link, inode);
}

Task<Result<Attributes>> ModelSession::attributes(InodeNumber inode) {
  co_return call(&Model::attributes, inode);
}

Task<Result<Attributes>> ModelSession::change(InodeNumber inode, const AttributeChange& change) {
  co_return call(&Model::change, inode, change);
}

Task<Result<std::vector<std::byte>>> ModelSession::extended(InodeNumber inode,
                                                            std::string_view name) {
  co_return call(&Model::extended, inode, name);
}

Task<Result<std::vector<std::string>>> ModelSession::extended_names(InodeNumber inode) {
  co_return call(&Model::extended_names, inode);
}

Task<Result<void>> ModelSession::set_extended(InodeNumber inode, std::string_view name,
                                              std::span<const std::byte> value, AttributeMode mode,
                                              Timestamp now) {
  co_return call(&Model::set_extended, inode, name, value, mode, now);
}

Task<Result<void>> ModelSession::remove_extended(InodeNumber inode, std::string_view name,
                                                 Timestamp now) {
  co_return call(&Model::remove_extended, inode, name, now);
}

Task<Result<Bytes>> ModelSession::read(InodeNumber inode, Bytes offset, std::span<std::byte> into) {
  co_return call(&Model::read, inode, offset, into);
}

Task<Result<void>> ModelSession::write(InodeNumber inode, Bytes offset,
                                       std::span<const std::byte> data,
                                       const WriteOptions& options) {
  co_return call(&Model::write, inode, offset, data, options);
}

Task<Result<Bytes>> ModelSession::append(InodeNumber inode, std::span<const std::byte> data,
                                         const WriteOptions& options) {
  co_return call(&Model::append, inode, data, options);
}

Task<Result<void>> ModelSession::truncate(InodeNumber inode, Bytes size,
                                          const WriteOptions& options) {
  co_return call(&Model::truncate, inode, size, options);
}

Task<Result<void>> ModelSession::allocate(InodeNumber inode, AllocationMode mode, Bytes offset,
                                          Bytes length, const WriteOptions& options) {
  co_return call(&Model::allocate, inode, mode, offset, length, options);
}

Task<Result<Bytes>> ModelSession::seek(InodeNumber inode, Bytes offset, Seek what) {
  co_return call(&Model::seek, inode, offset, what);
}

Task<Result<void>> ModelSession::sync(InodeNumber inode) { co_return call(&Model::sync, inode); }

Task<Result<void>> ModelSession::sync_all() { co_return call(&Model::sync_all); }

Task<Result<void>> ModelSession::hold(InodeNumber inode) { co_return call(&Model::hold, inode); }

Task<> ModelSession::release(InodeNumber inode, std::uint64_t holds) {
  call(&Model::release, inode, holds);
  co_return;
}

Task<Result<Statistics>> ModelSession::statistics() { co_return call(&Model::statistics); }

}  // namespace perdura::fs
